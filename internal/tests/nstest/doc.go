// Package nstest gives tests their own network: namespaces, veth pairs, processes in them and raw
// frames. It is for tests only.
//
// A package whose tests need root calls [Main] from its TestMain: the test binary then runs in a
// private mount namespace with its own /run (so /run/netns and /run/scaffold are its own) and a fresh
// bpffs, inside a cgroup of its own that is killed when it ends. A crash leaves nothing behind: the
// namespaces here have no name and die with the processes that hold them.
//
// A test inside a namespace owns one locked thread for as long as [NS.Do] runs; goroutines started
// there are outside again. Open sockets inside, use them anywhere.
package nstest
