// Package keeper is the process beside an agent's worker that holds what is to outlive it: descriptors, each with a few
// words, under keys. It starts the worker, gives it all that the one before had given to it, and starts another one where
// that dies or says nothing for a second.
//
// It knows nothing of boost. Its only input is a pair of sockets that the worker alone has, and it reads no byte of any
// connection: what could fail is in the worker. Where the keeper itself is gone, or stands still, the worker ends, as it
// would if it was told to: a worker without a supervisor is nobody's.
//
// Why not systemd's store of descriptors (sd_pid_notify_with_fds): labs, containers and machines without systemd have
// none.
package keeper
