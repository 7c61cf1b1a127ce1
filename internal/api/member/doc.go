// Package member is a member's side of a network's controllers, whoever the member is: a host, a router, a switch that a
// controller speaks for, a program that makes load. A [Member] joins by a stream of the service Agent and holds the
// [Session] that begins; [Credentials] say who it is; [Patience] is how long it waits until it comes back.
//
// What a host and a router say to the controller is theirs, and so is the way to it: a host's leads by its uplinks, a
// router's to each controller that it knows ([api.Controllers]).
package member
