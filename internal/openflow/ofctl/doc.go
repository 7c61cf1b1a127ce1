// Package ofctl reads and writes matches and actions of OpenFlow in the words of ovs-ofctl, as far as operators
// need them: "ipv6_dst=fd5d::/64,tcp_dst=80" and "set_field:fd5d::1->ipv6_dst,output:to-s1". What a field needs
// beside it, as tcp_dst does that the packet is of TCP, is put in where there is only one way to mean it.
//
// Ports are called by their names or numbers. What can be read is what a rule of an operator may say; written
// is whatever a switch holds.
package ofctl
