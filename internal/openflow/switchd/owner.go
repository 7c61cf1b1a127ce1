package switchd

// An owner is who a rule in a switch belongs to; it stands in the rule's cookie.
type owner uint16

// The owners of this package; those of linked-in modules follow.
const (
	ownScaffold owner = iota // what internal/openflow/oftables makes of the controller's rules
	ownJoin
	ownLinks
	ownOperator       // flows that an operator added
	ownDistant        // links of Config
	ownSteering       // what is sent to agents of boost
	ownOthers   owner = 16
)
