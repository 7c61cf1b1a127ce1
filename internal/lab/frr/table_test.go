package frr

import (
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func routeTo(prefix string, hop uint32, via ...Via) Message {
	return Message{Route: &Route{
		Prefix: netip.MustParsePrefix(prefix), Kind: Unicast, Table: unix.RT_TABLE_MAIN, HopID: hop, Via: via,
	}}
}

func hopBy(id uint32, index int) Message {
	return Message{Hop: &Hop{ID: id, Via: Via{Index: index, Weight: 1}}}
}

func groupOf(id uint32, members ...Member) Message { return Message{Hop: &Hop{ID: id, Group: members}} }

func deleted(m Message) Message {
	m.Delete = true
	return m
}

// after applies messages and returns what Changes says, as text.
func after(t *Table, messages ...Message) (said []string) {
	for _, m := range messages {
		t.Apply(m)
	}
	for _, c := range t.Changes(nil) {
		said = append(said, c.String())
	}
	return said
}

func says(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("said %q, want %q", got, want)
	}
}

func TestARouteThatIsDeletedAndAddedAtOnceIsOneReplacement(t *testing.T) {
	table := NewTable()
	says(t, after(table, routeTo("::/0", 0, Via{Index: 1, Weight: 1})), "::/0 unicast [dev 1]")
	says(t, after(table, deleted(routeTo("::/0", 0)), routeTo("::/0", 0, Via{Index: 2, Weight: 1})), "::/0 unicast [dev 2]")
	says(t, after(table, deleted(routeTo("::/0", 0)), routeTo("::/0", 0, Via{Index: 2, Weight: 1})))
	says(t, after(table, deleted(routeTo("::/0", 0))), "::/0 gone []")
}

func TestAGroupMayComeBeforeItsMembersAndAfterItsRoutes(t *testing.T) {
	table := NewTable()
	says(t, after(table, routeTo("fd00::/64", 10)))
	says(t, after(table, groupOf(10, Member{11, 1}, Member{12, 3})))
	says(t, after(table, hopBy(12, 2)), "fd00::/64 unicast [dev 2]")
	says(t, after(table, hopBy(11, 1)), "fd00::/64 unicast [dev 1 dev 2]")
	says(t, after(table, hopBy(11, 4)), "fd00::/64 unicast [dev 2 dev 4]")
	says(t, after(table, hopBy(11, 4)))
}

func TestWaysStayUntilTheirRouteIsTold(t *testing.T) {
	table := NewTable()
	says(t, after(table, hopBy(1, 1), routeTo("fd00::/64", 1)), "fd00::/64 unicast [dev 1]")
	says(t, after(table, deleted(hopBy(1, 1))))
}

func TestWhatIsNotReplayedIsGone(t *testing.T) {
	table := NewTable()
	one, two := routeTo("fd00:1::/64", 0, Via{Index: 1, Weight: 1}), routeTo("fd00:2::/64", 0, Via{Index: 2, Weight: 1})
	after(table, one, two)
	table.Mark()
	says(t, after(table, one))
	table.Sweep()
	says(t, after(table), "fd00:2::/64 gone []")
	if table.Len() != 1 {
		t.Errorf("%d routes are left, want 1", table.Len())
	}
}

func TestOtherTablesAreNotLookedAt(t *testing.T) {
	m := routeTo("fd00::/64", 0, Via{Index: 1, Weight: 1})
	m.Route.Table = 10
	says(t, after(NewTable(), m))
}
