package hostd

import (
	"container/list"
	"fmt"
	"net/netip"
	"time"

	"scaffold.dev/scaffold/internal/bpf/host"
	"scaffold.dev/scaffold/internal/core/session"
	"scaffold.dev/scaffold/sid"
)

// A chapter is one thing that happened to a flow.
type chapter struct {
	at    time.Time
	kind  string // of apiv1.Chapter
	text  string
	stall time.Duration
}

// A story is what happened to one flow lately, kept for a while after its end.
type story struct {
	key      session.Key
	tuple    host.Tuple
	service  sid.ServiceID
	names    []sid.SocketID // what this end was called
	chapters []chapter
	ended    bool
}

// How much is remembered: of each flow its beginning and the newest chapters.
const (
	mostStories  = 4096
	mostChapters = 32
	mostNames    = 16
	stallLimit   = 10 * time.Millisecond
)

// stories are the newest, by who had something happen last.
type stories struct {
	byKey map[session.Key]*list.Element // of *story
	order *list.List                    // the one that was told longest ago in front
}

func newStories() stories {
	return stories{byKey: map[session.Key]*list.Element{}, order: list.New()}
}

// begin opens the story of a flow that something is about to happen to.
func (s *stories) begin(k session.Key, f host.Flow) {
	if s.byKey[k] != nil {
		return
	}
	if s.order.Len() >= mostStories {
		first := s.order.Front()
		delete(s.byKey, first.Value.(*story).key)
		s.order.Remove(first)
	}
	t := &story{key: k, tuple: f.Tuple, service: f.Service, names: []sid.SocketID{f.ID}}
	t.chapters = []chapter{{at: began(f), kind: "begin", text: beginning(f)}}
	s.byKey[k] = s.order.PushBack(t)
}

// began is when the flow did, which was before anything happened to it; of one from before an edge that keeps that,
// now.
func began(f host.Flow) time.Time {
	if at, known := f.Began(); known {
		return at
	}
	return time.Now()
}

// beginning says what the flow was when it first mattered.
func beginning(f host.Flow) string {
	at := f.Locator.String()
	if f.State == host.Connecting {
		return "connecting from " + at
	}
	return fmt.Sprintf("%v of a flow between %s here and %v there", f.Role, at, sid.LocatorOf(f.WirePeer.Addr()))
}

// add tells a chapter.
func (s *stories) add(k session.Key, c chapter) {
	e := s.byKey[k]
	if e == nil {
		return
	}
	s.order.MoveToBack(e)
	t := e.Value.(*story)
	if len(t.chapters) == mostChapters { // the beginning stays
		copy(t.chapters[1:], t.chapters[2:])
		t.chapters = t.chapters[:mostChapters-1]
	}
	t.chapters = append(t.chapters, c)
}

// lengthen tells a chapter that may be the last one gone on, and says whether it is another one.
func (s *stories) lengthen(k session.Key, c chapter) bool {
	if e := s.byKey[k]; e != nil {
		t := e.Value.(*story)
		if last := &t.chapters[len(t.chapters)-1]; last.kind == c.kind && last.stall < c.stall && c.at.Sub(last.at) < c.stall {
			last.stall, last.text = c.stall, c.text
			return false
		}
	}
	s.add(k, c)
	return true
}

// call notes what the flow's end is called now.
func (s *stories) call(k session.Key, id sid.SocketID) {
	if e := s.byKey[k]; e != nil {
		t := e.Value.(*story)
		if t.names[len(t.names)-1] != id {
			t.names = append(t.names[max(0, len(t.names)-mostNames+1):], id)
		}
	}
}

// end closes the story.
func (s *stories) end(k session.Key, at time.Time) {
	if e := s.byKey[k]; e != nil && !e.Value.(*story).ended {
		s.add(k, chapter{at: at, kind: "end", text: "the flow is over"})
		e.Value.(*story).ended = true
	}
}

// again opens a story that had ended, or one under another name.
func (s *stories) again(k session.Key) {
	if e := s.byKey[k]; e != nil {
		e.Value.(*story).ended = false
	}
}

// rename gives a story that began with another attempt the name of the one that was answered.
func (s *stories) rename(from, to session.Key) {
	if e := s.byKey[from]; e != nil && from != to && s.byKey[to] == nil {
		e.Value.(*story).key = to
		delete(s.byKey, from)
		s.byKey[to] = e
	}
}

// find looks for a story by a stable identifier, a socketID or a program's address and port.
func (s *stories) find(want string) *story {
	id, ip, at := parseName(want)
	for e := s.order.Back(); e != nil; e = e.Prev() {
		if t := e.Value.(*story); t.is(id, ip, at) {
			return t
		}
	}
	return nil
}

func (t *story) is(id sid.SocketID, ip netip.Addr, at netip.AddrPort) bool {
	for _, n := range t.names {
		if id != 0 && n == id {
			return true
		}
	}
	return ip.IsValid() && t.key.Stable == ip || at.IsValid() && (t.tuple.Local == at || t.tuple.Remote == at)
}
