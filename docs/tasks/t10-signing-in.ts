/** T10: signing in with an existing provider. The replica opens offline with an expired token. */
import { createClient } from '@holdfast/replica';
import { schema } from './schema.ts';

export interface Provider {
  readonly user: { readonly id: string } | null;
  lastUserId(): string;
  getToken(): Promise<string>;
  login(): Promise<void>;
  onChange(run: () => void): void;
}

export function createSignedInClient(provider: Provider, dir: string, ledger = 'https://sync.example.com') {
  const client = createClient({
    schema,
    dir,
    ledger,
    // The account id is remembered by the app.
    account: { id: provider.user?.id ?? provider.lastUserId(), token: () => provider.getToken() },
  });
  client.session.subscribe(() => {
    if (client.session.current === 'sign-in-needed') void provider.login();
  });
  provider.onChange(() => {
    if (provider.user !== null) void client.signIn({ id: provider.user.id, token: () => provider.getToken() });
  });
  return client;
}
