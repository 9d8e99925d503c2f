import '@holdfast/replica/worker';
