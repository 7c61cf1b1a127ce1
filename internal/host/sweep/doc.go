// Package sweep looks after the flows of an edge beside the daemon's loop: it removes those that have ended, and counts
// those that live. Which sockets hold a flow it asks the kernel, in the host's namespace and in each guest's.
package sweep
