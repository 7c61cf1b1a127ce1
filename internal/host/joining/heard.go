package joining

import (
	"scaffold.dev/scaffold/internal/host/uplinks"
)

// Found attaches anew, and goes on meanwhile where the router is that of before.
func (j *Joining) Found(u *uplinks.Uplink) {
	delete(j.bids, u.Name)
	if p := j.Places.On(u.Name); p != nil && p.SameRouter(u.Hello) {
		j.Places.Presume(u.Name, u.Index, u.Router)
	}
	j.Attend()
}

// Unheard goes on by the router of before.
func (j *Joining) Unheard(u *uplinks.Uplink) { j.Places.Presume(u.Name, u.Index, u.Router) }

// Gone is an interface that is not there any more.
func (j *Joining) Gone(index int) { j.Places.Gone(index) }

// Down keeps flows from the uplink.
func (j *Joining) Down(u *uplinks.Uplink) { j.Places.Silence(u.Name, u.Index) }

// Lost gives up the place of an uplink that leads nowhere any more, where there is another one.
func (j *Joining) Lost(u *uplinks.Uplink) {
	delete(j.bids, u.Name)
	for _, l := range j.Places.Lose(u.Name) {
		j.detach(l, j.Places.First().Locator)
	}
	j.Attend()
}
