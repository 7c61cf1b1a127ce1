// Package etcd is how a command is told of an etcd elsewhere, in which controllers keep the network's state.
package etcd
