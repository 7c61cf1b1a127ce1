// Command tftpd serves files over TFTP (RFC 1350, and the options blksize and tsize of RFC 2347 to 2349) so
// that a transfer survives its server: clients are unmodified, and the file arrives whole.
//
//	tftpd --service boot:69 --root /srv/tftp --record /srv/sessions
//
// A TFTP server answers from a port of its own, which names the transfer. This one answers from port 69,
// as RFC 1350 allows: so a datagram of a transfer that has lost its server goes to (service, UDP, 69) like
// a request does, and reaches an instance. That finds the transfer in the record that all instances
// share, and the acknowledgement itself says which block is next.
//
// The record is kept by the client's port and host, since a datagram flow that resolves anew comes from a
// new address on the wire. Where a client has moved meanwhile its port alone decides, if only one transfer
// has it and the acknowledgement fits.
//
// --shed-after N sheds each transfer that began here after N blocks; SIGUSR1 sheds all; SIGTERM sheds all
// and ends.
package main
