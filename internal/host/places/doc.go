// Package places is where a host is: the locators that it has by its uplinks, those that it had, and the network that gave
// them. What follows from a change is done in one order: the edge, then the routes, then the flows. Who gives places, and
// whether an uplink leads to a router, is not its concern.
package places
