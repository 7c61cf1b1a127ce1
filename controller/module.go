package controller

import "time"

// Patience is how long a call of a module may take.
const Patience = 5 * time.Second

// A Module extends the controller.
type Module interface {
	// Name tells it from other modules: letters, digits and hyphens, in lower case.
	Name() string
	// Start is called once, before anything else, and says what the module wants to hear of. An error stops it.
	Start(Network) error
}

// A Keeper is a module whose rules outlive its process: what a switch has of them from a controller before stays there until
// the module says, by SetFlows, what it wants of that switch, or is stopped. Rules of other modules that nobody wants go when
// the switch connects. The module must have the place among all modules that it had before, and use table 0 alone: what is kept
// does not keep Tables from giving their numbers to others.
type Keeper interface {
	Module
	KeepsRules()
}

// A Network is what a module can see and do. Its methods may be called from any goroutine; what they register
// is called in the module's own. All of them do nothing once the module is stopped, those with an error
// return [ErrStopped].
type Network interface {
	// HandleSwitches calls f for each switch that is there, and again whenever one comes, goes or changes.
	HandleSwitches(f func(Switch))
	// HandleHosts calls f for each host that is there, and again whenever one comes, goes, moves or changes.
	HandleHosts(f func(Host))
	// Subscribe has switches punt the packets that match, and calls f for them.
	Subscribe(s Subscription, f func(Packet)) error
	// Every calls f each d, until the module stops; a call that is late is not made up for.
	Every(d time.Duration, f func())

	// Switches are those that are connected, by name.
	Switches() []Switch
	// Hosts are those that the controller knows, by name.
	Hosts() []Host
	// Links are those between routers, switches or not, as they are reported from both ends.
	Links() []Link
	// Path is the way that packets take from one host or router to another.
	Path(from, to string) (Path, error)

	// SetFlows makes these the module's rules at a switch: what it had and does not name goes, what is there
	// already is left alone. They are kept for a switch that is away.
	SetFlows(switchName string, flows []Flow) error
	// ChangeFlows puts rules in at a switch, or in the place of those of the same table, First, priority and match, takes others
	// out, whose instructions do not count, and leaves the rest alone: all of it or, with an error, nothing. It costs what it
	// changes, however many rules there are. A rule with an idle time is put in anew, so that the time starts anew. A Keeper
	// calls SetFlows of a switch before.
	ChangeFlows(switchName string, set, unset []Flow) error
	// HandleExpired calls f with those of the module's rules that a switch has taken out by itself, since no packet had matched
	// them for as long as their idle time. They are no longer wanted: nothing puts them back until the module names them again,
	// and what it names again before f is called is not told. SetFlows leaves alone what is there: a rule that it names as it was,
	// and that expires just then, is told as well; one that ChangeFlows puts in anew is not. A rule that expires while its switch is away is put back when the
	// switch comes again, and its idle time starts anew.
	HandleExpired(f func(switchName string, gone []Flow))
	// HandleHeld calls f when a switch has come to hold all that SetFlows and ChangeFlows wanted of it, with how often they had
	// been called for it by then, without an error: where that is less than how often they were called by now, the rest is on its way.
	// It does so again when a switch comes again and holds it. News of one switch are merged, the last counts.
	HandleHeld(f func(switchName string, calls uint64))
	// Tables are the numbers of n tables that are the module's own at all switches.
	Tables(n int) ([]uint8, error)
	// Send has a switch send a packet.
	Send(switchName string, out Out) error
	// SetLinks says what the module found out of a switch's links; it replaces what it said before. The planner
	// uses them beside those that routers report themselves.
	SetLinks(switchName string, links []Link) error
	// Report puts a line into the network's events: subject is a switch, host or service.
	Report(subject, text string)
}
