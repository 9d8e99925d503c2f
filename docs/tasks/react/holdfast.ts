/** One file in the app: the hooks, for its schema. Types only, no runtime cost. */
import type { AppSchema } from '../schema.ts';
import { bindReact } from './stub-of-react-binding.ts';

export const {
  ReplicaProvider,
  useReplica,
  useLiveQuery,
  useSuspenseLiveQuery,
  useEntity,
  useDraft,
  useCommit,
  useUndo,
  useStatus,
  useDesk,
} = bindReact<AppSchema>();
