// Package header is one view of IPv6 packets and what is above: [IPv6] reads the header that every packet has, [Above] walks past
// extension headers to that of the transport, which [Transport] reads, and Append functions build packets, which [Seal] gives
// their checksum.
//
// The programs in the kernel read alike (internal/bpf/include/parse.h), and tests hold what is built on this package to
// them. What a layout of another kind needs, trains of segments and VXLAN, stays with that.
package header
