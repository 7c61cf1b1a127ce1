// Package store keeps what must outlive the controller in etcd: services and their policy, weights,
// drains, the hosts' identities and locators, the routers' blocks and links, the epoch, the network's key, and the locators that
// nobody may have yet. It is the only importer of etcd.
//
// etcd runs inside the process, in a directory and without a listening socket, or elsewhere. What
// hosts register and how loaded they are is not here: they tell it again, so no fsync is in its way.
//
// No record but a token's end holds a time by which anything is decided: a clock that jumps changes nothing else.
package store
