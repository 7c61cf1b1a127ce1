// Package switches runs the Open vSwitch of each switch of a lab: a database and a daemon of its own in the switch's node,
// told the ports of the plan and which controllers to look for. What these controllers say to it is not known here.
package switches
