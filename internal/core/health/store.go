package health

import (
	"fmt"
	"time"
)

// A Store is the part of the state that is on the disk of one controller.
type Store struct {
	At      string // name of the controller
	Dir     string
	Failing string // why nothing is saved; "": it is
	Since   time.Time
	Pending int    // records that are not saved yet
	Damaged string // what was found wrong with it
	Behind  uint64 // changes that the others have, and it has not
	Free    uint64 // bytes of the disk; of Total 0: not known
	Needed  uint64 // of these, for the next write
	Total   uint64
}

// When a disk counts as nearly full: an embedded etcd takes a segment of its log at a time, and Needed is two of these.
// A twentieth is what people are used to look at, but of large disks that is much.
const (
	lowTimes = 8
	lowShare = 20
	lowMost  = 1 << 30
)

// behind is how many changes a member may lag: a busy one is some behind at any moment.
const behind = 5000

func stores(s Snapshot) (all []Problem) {
	for _, x := range s.Stores {
		p := Problem{Where: x.At, Count: 1}
		known := x.Total > 0
		if x.Damaged != "" {
			q := p
			q.Kind, q.Severity, q.What, q.Next = StoreDamaged, Critical, fmt.Sprintf("the store of controller %s is damaged: %s", x.At, x.Damaged), "scaffold state restore --help"
			all = append(all, q)
		}
		full := known && x.Free < x.Needed
		switch {
		case full:
			p.Kind, p.Severity, p.Since = DiskFull, Critical, x.Since
			p.What = fmt.Sprintf("the disk of controller %s is full: %s are free under %s, %s are needed: nothing can be saved", x.At, size(x.Free), x.Dir, size(x.Needed))
			p.Next = s.on("df -h "+x.Dir, x.At)
		case x.Failing != "":
			p.Kind, p.Severity, p.Since = StoreFailing, Critical, x.Since
			p.What = fmt.Sprintf("the state is not saved: %s", x.Failing)
			if x.Pending > 0 {
				p.What += fmt.Sprintf(" (%s wait)", count(x.Pending, "record"))
			}
			p.Next = s.logs("controld", x.At, "")
		case known && (x.Free < lowTimes*x.Needed || x.Free < x.Total/lowShare && x.Free < lowMost):
			p.Kind, p.Severity = DiskLow, Warning
			p.What = fmt.Sprintf("the disk of controller %s is nearly full: %s of %s are free under %s", x.At, size(x.Free), size(x.Total), x.Dir)
			p.Next = s.on("df -h "+x.Dir, x.At)
		}
		if p.Kind != "" {
			all = append(all, p)
		}
		if x.Behind > behind {
			all = append(all, Problem{Kind: StoreBehind, Severity: Warning, Where: x.At, Count: 1,
				What: fmt.Sprintf("the store of controller %s is %d changes behind the others': its disk or its network is slow", x.At, x.Behind), Next: s.logs("controld", x.At, "")})
		}
	}
	if s.Restored != "" && s.Unknown > 0 {
		all = append(all, Problem{Kind: StateRestored, Severity: Warning, Count: s.Unknown,
			What: fmt.Sprintf("the state is that of a backup (%s), and hosts serve %s that it does not know", s.Restored, count(s.Unknown, "service")),
			Next: s.ask("events -n 1000")})
	}
	return all
}
