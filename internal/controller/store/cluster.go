package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/server/v3/etcdserver"
)

// A Cluster makes the embedded etcd one of several, each inside a controller of the same network.
type Cluster struct {
	Name string // of this member: the controller's
	Peer string // URL at which the other members reach this one
	// Members are those that the cluster begins with, this one among them. A directory with a member in it needs none.
	Members []Peer
	// Join asks a running cluster to take this member in and returns its members; nil where there is none to ask. It
	// is called only where the directory holds no member yet.
	Join func(context.Context) ([]Peer, error)
	// Files in PEM by which members know each other; all empty: anybody who reaches the port is believed.
	CertFile, KeyFile, CAFile string
}

// A Peer is one etcd of a cluster.
type Peer struct {
	Name string // empty until it has come for the first time
	URL  string
	New  bool // it learns still and has no vote
}

// Errors of changes to a cluster.
var (
	ErrMember   = errors.New("is a member already")
	ErrNoMember = errors.New("no such member")
	ErrOut      = errors.New("this controller was taken out of the cluster")
)

// ParseMembers reads NAME=URL,...
func ParseMembers(list []string) (members []Peer, err error) {
	for _, text := range list {
		name, peer, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("member %q: want NAME=URL, as c1=https://[2001:db8::1]:23729", text)
		}
		if err := CheckPeer(peer); err != nil {
			return nil, fmt.Errorf("member %q: %w", text, err)
		}
		if slices.ContainsFunc(members, func(m Peer) bool { return m.Name == name || m.URL == peer }) {
			return nil, fmt.Errorf("member %q: its name or its URL is another one's, too", text)
		}
		members = append(members, Peer{Name: name, URL: peer})
	}
	return members, nil
}

// CheckPeer says what is wrong with the URL of a member.
func CheckPeer(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || !isPort(u.Port()) || u.Path != "" || u.User != nil {
		return fmt.Errorf("%q: want http://host:port or https://host:port", text)
	}
	return nil
}

// isPort reports whether a text is the number of a port of TCP; url.Parse has seen that it is a number.
func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// Own is the URL of this member, empty where nothing says it.
func (c *Cluster) Own() string {
	for _, m := range c.Members {
		if m.Name == c.Name {
			return m.URL
		}
	}
	return c.Peer
}

func initial(members []Peer) string {
	pairs := make([]string, len(members))
	for i, m := range members {
		pairs[i] = m.Name + "=" + m.URL
	}
	return strings.Join(pairs, ",")
}

// Members are those of the embedded etcd's cluster, by name; nil where etcd is elsewhere.
func (s *Store) Members(ctx context.Context) ([]Peer, error) {
	list, err := s.members(ctx)
	if err != nil {
		return nil, err
	}
	var members []Peer
	for _, m := range list {
		members = append(members, Peer{Name: m.Name, URL: strings.Join(m.PeerURLs, ","), New: m.IsLearner})
	}
	slices.SortFunc(members, func(a, b Peer) int { return strings.Compare(a.Name+a.URL, b.Name+b.URL) })
	return members, nil
}

func (s *Store) members(ctx context.Context) ([]*pb.Member, error) {
	if s.cfg.Cluster == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	answer, err := s.etcd().MemberList(ctx)
	if err != nil {
		return nil, fmt.Errorf("store: ask who is in the cluster: %w", err)
	}
	return answer.Members, nil
}

// AddMember takes a member in, as one that learns: it gets a vote by Promote once it has caught up, so that one that
// never comes holds up nobody. The answer is the cluster as the new member has to know it.
func (s *Store) AddMember(ctx context.Context, name, peer string) ([]Peer, error) {
	if s.cfg.Cluster == nil {
		return nil, fmt.Errorf("%w: the state is not in a cluster of the controllers: start this one with --cluster %s=URL first", ErrNoMember, s.cfg.Name)
	}
	have, err := s.members(ctx)
	if err != nil {
		return nil, err
	}
	asked := false
	for _, m := range have {
		same := slices.Contains(m.PeerURLs, peer)
		switch {
		case same && m.Name == "" || same && m.IsLearner && m.Name == name:
			asked = true // it was taken in and has not come, or comes again
		case same || m.Name == name:
			return nil, fmt.Errorf("%s at %s %w: if its data is lost, `scaffold controller remove %s` first", m.Name, strings.Join(m.PeerURLs, ","), ErrMember, m.Name)
		}
	}
	if !asked {
		ctx, cancel := context.WithTimeout(ctx, commitTimeout)
		defer cancel()
		if _, err := s.etcd().MemberAddAsLearner(ctx, []string{peer}); err != nil {
			return nil, fmt.Errorf("store: take %s in: %w", name, err)
		}
	}
	members, err := s.Members(ctx)
	for i := range members {
		if members[i].URL == peer {
			members[i].Name = name
		}
	}
	return slices.DeleteFunc(members, func(m Peer) bool { return m.Name == "" }), err
}

// Promote gives a vote to members that have learned enough, and names those that got it. Who is not that far yet is
// left for the next time.
func (s *Store) Promote(ctx context.Context) (promoted []string, err error) {
	list, err := s.members(ctx)
	for _, m := range list {
		if !m.IsLearner || m.Name == "" {
			continue
		}
		once, cancel := context.WithTimeout(ctx, commitTimeout)
		_, failed := s.etcd().MemberPromote(once, m.ID)
		cancel()
		switch {
		case failed == nil:
			promoted = append(promoted, m.Name)
		case !errors.Is(failed, rpctypes.ErrMemberLearnerNotReady):
			err = fmt.Errorf("store: give %s a vote: %w", m.Name, failed)
		}
	}
	return promoted, err
}

// RemoveMember takes a member out, by name. Its own process ends then, if it runs.
func (s *Store) RemoveMember(ctx context.Context, name string) error {
	list, err := s.members(ctx)
	if err != nil {
		return err
	}
	for _, m := range list {
		if m.Name == name || m.Name == "" && slices.Contains(m.PeerURLs, name) {
			err := onceWell(ctx, func(ctx context.Context) error {
				_, err := s.etcd().MemberRemove(ctx, m.ID)
				return err
			})
			if err != nil {
				return fmt.Errorf("store: take %s out: %w", name, err)
			}
			return nil
		}
	}
	return fmt.Errorf("controller %.80q: %w", name, ErrNoMember)
}

// onceWell makes a change that etcd refuses to a cluster some of whose members have been connected to this one for less
// than HealthInterval (5 s), as when one came or went just now. It waits for that long. What is refused still is refused
// because members are away.
func onceWell(ctx context.Context, change func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, etcdserver.HealthInterval+time.Second) // within what a call may take
	defer cancel()
	for {
		err := change(ctx)
		if !errors.Is(err, rpctypes.ErrUnhealthy) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: too few of the other members have been connected for %v; start those that are away, then try again", err, etcdserver.HealthInterval)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// reachable tells the cluster this member's URL where it is another one than before: a member that was alone has none.
func (s *Store) reachable(ctx context.Context) error {
	c := s.cfg.Cluster
	if c == nil || s.server == nil {
		return nil
	}
	id := uint64(s.server.server.Server.MemberID())
	list, err := s.members(ctx)
	if err != nil {
		return err
	}
	for _, m := range list {
		if m.ID == id && !slices.Equal(m.PeerURLs, []string{c.Own()}) {
			ctx, cancel := context.WithTimeout(ctx, commitTimeout)
			defer cancel()
			if _, err := s.etcd().MemberUpdate(ctx, id, []string{c.Own()}); err != nil {
				return fmt.Errorf("store: tell the cluster of %s: %w", c.Own(), err)
			}
		}
	}
	return nil
}

// voter reports whether this member has a vote; until then it should not lead.
func (s *Store) voter() bool {
	return s.server == nil || !s.server.server.Server.IsLearner()
}
