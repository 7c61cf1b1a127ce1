// Package places knows where the hosts of a network are, one place for each uplink, and what their first-hop routers say of
// them there. It gives places, takes them back, and decides what a silence or a departure means for the rules; what it means
// for the host it tells others.
package places
