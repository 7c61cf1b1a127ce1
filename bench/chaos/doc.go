// Package chaos breaks a lab at random, from a seed, under streams and datagrams whose every byte is
// checked, and says what did not hold.
//
// A schedule is a list of batches: what breaks, what repairs it, and then a look at everything. What
// must hold is simple: no byte is ever wrong; no stream looks complete that is not; no connection ends
// that nothing explains; and once the network is whole again, every flow goes on.
package chaos
