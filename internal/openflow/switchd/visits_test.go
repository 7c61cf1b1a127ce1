package switchd

import (
	"testing"
	"time"
)

func TestASwitchThatComesAgainAndAgainWaitsLonger(t *testing.T) {
	var r registry
	now := time.Now()
	var last time.Duration
	told := 0
	for i := range 20 {
		wait, first := r.visit(7, now.Add(time.Duration(i)*time.Millisecond))
		if first {
			told++
		}
		if i < visitOften && wait != 0 {
			t.Errorf("visit %d waits %v", i+1, wait)
		}
		if wait < last {
			t.Errorf("visit %d waits %v, the one before %v", i+1, wait, last)
		}
		last = wait
	}
	if last != visitLast || told != 1 {
		t.Errorf("the last waits %v and it was told of %d times, want %v and once", last, told, visitLast)
	}
	if wait, _ := r.visit(8, now); wait != 0 {
		t.Errorf("another switch waits %v for it", wait)
	}
	if wait, _ := r.visit(7, now.Add(visitWindow+time.Second)); wait != 0 {
		t.Errorf("after %v of peace it waits %v", visitWindow, wait)
	}
}

func TestVisitorsAreNotRememberedWithoutLimit(t *testing.T) {
	var r registry
	for id := range uint64(3 * maxVisitors) {
		r.visit(id, time.Now())
	}
	if len(r.visits) > maxVisitors {
		t.Errorf("%d visitors are remembered", len(r.visits))
	}
}
