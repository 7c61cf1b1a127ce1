package controllers

import (
	"context"
	"errors"
	"testing"

	"scaffold.dev/scaffold/internal/controller/store"
)

func TestNobodyLeadsWhileTheStoreIsOutOfReach(t *testing.T) {
	p := NewPeers()
	if l := p.Leader(); l != nil {
		t.Errorf("%s leads, by a store that has said nothing", l.Name)
	}
	p.Set([]store.Candidate{runs("c1", "a:1"), runs("c2", "b:1")}, nil)
	if l := p.Leader(); l == nil || l.Name != "c1" {
		t.Errorf("leader %v, want the first, c1", l)
	}
	began := p.Leaderless()
	_, _, changed := p.Now()
	p.Set(nil, errors.New("no quorum"))
	<-changed
	if l := p.Leader(); l != nil {
		t.Errorf("%s leads, though nobody can say", l.Name)
	}
	if running, _, _ := p.Now(); len(running) != 2 || !p.Leaderless().After(began) {
		t.Errorf("%d are known to have run, leaderless since %v: want those of before, from the time on when the store was lost", len(running), p.Leaderless())
	}
}

func TestTheListHasWhoRunsWhoIsAMemberAndWhoIsRemembered(t *testing.T) {
	p := NewPeers()
	p.Set([]store.Candidate{runs("c2", "b:1"), runs("c1", "a:1")}, nil)
	list := p.List([]store.Peer{{Name: "c1", URL: "http://a"}, {Name: "c4", URL: "http://d", New: true}}, map[string]store.Controller{"c3": {Name: "c3"}})
	states := ""
	for _, c := range list {
		states += c.Name + " " + c.State + ", "
	}
	if states != "c1 stands by, c2 leads, c3 gone, c4 joins, " {
		t.Errorf("listed %s", states)
	}
}

func TestWhoFollowsHearsOfEachChange(t *testing.T) {
	p := NewPeers()
	p.Set([]store.Candidate{runs("c1", "a:1")}, nil)
	ctx, end := context.WithCancel(t.Context())
	heard, over := make(chan int), make(chan struct{})
	go func() { // ends with ctx
		defer close(over)
		p.Follow(ctx, func(running []store.Candidate) { heard <- len(running) })
	}()
	if n := <-heard; n != 1 {
		t.Errorf("heard of %d, want 1", n)
	}
	p.Set([]store.Candidate{runs("c1", "a:1"), runs("c2", "b:1")}, nil)
	if n := <-heard; n != 2 {
		t.Errorf("heard of %d, want 2", n)
	}
	end()
	<-over
}
