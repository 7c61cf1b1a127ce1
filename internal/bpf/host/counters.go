package host

import (
	"fmt"
)

// reasons names enum host_reason of drop.h, in its order.
var reasons = [...]string{
	edgeHostReasonHOST_NONE:           "",
	edgeHostReasonHOST_MALFORMED:      "drop_malformed",
	edgeHostReasonHOST_NO_UPLINK:      "drop_no_uplink",
	edgeHostReasonHOST_LEAK:           "drop_leak",
	edgeHostReasonHOST_NO_FLOW_OUT:    "drop_no_flow_out",
	edgeHostReasonHOST_NO_FLOW_IN:     "drop_no_flow_in",
	edgeHostReasonHOST_DIALLED_PEER:   "drop_dialled_peer",
	edgeHostReasonHOST_FULL:           "drop_full",
	edgeHostReasonHOST_BAD_SOURCE:     "drop_bad_source",
	edgeHostReasonHOST_SECOND_ANSWER:  "drop_second_answer",
	edgeHostReasonHOST_BAD_PORT:       "drop_bad_port",
	edgeHostReasonHOST_NOT_ADMITTED:   "drop_not_admitted",
	edgeHostReasonHOST_NOT_RESOLVED:   "drop_not_resolved",
	edgeHostReasonHOST_FRAGMENT:       "drop_fragment",
	edgeHostReasonHOST_REWRITE:        "drop_rewrite",
	edgeHostReasonHOST_HOP_LIMIT:      "drop_hop_limit",
	edgeHostReasonHOST_CONNECTING:     "drop_connecting",
	edgeHostReasonHOST_UNUSABLE_ERROR: "drop_unusable_error",
	edgeHostReasonHOST_BLOCKED:        "drop_blocked",
	edgeHostReasonHOST_RETIRED:        "drop_retired",
	edgeHostReasonHOST_METERED:        "drop_metered",
	edgeHostReasonHOST_ADOPTING:       "drop_adopting",
	edgeHostReasonHOST_NOT_ADOPTED:    "drop_not_adopted",
	edgeHostReasonHOST_BOUNCED:        "bounced",
	edgeHostReasonHOST_REFUSED:        "refused",
	edgeHostReasonHOST_PROBED:         "probed",
	edgeHostReasonHOST_MESSAGE:        "message",
	edgeHostReasonHOST_HELD:           "held",
	edgeHostReasonHOST_RESET:          "reset",
	edgeHostReasonHOST_DAEMON_AWAY:    "daemon_away",
	edgeHostReasonHOST_CUT_OFF:        "cut_off",
	edgeHostReasonHOST_STRAY:          "stray",
	edgeHostReasonHOST_ELSEWHERE:      "elsewhere",
	edgeHostReasonHOST_ADOPTED:        "adopted",
	edgeHostReasonHOST_DIED:           "died",
	edgeHostReasonHOST_EARLY_ERROR:    "drop_early_error",
	edgeHostReasonHOST_FORBIDDEN:      "forbidden",
	edgeHostReasonHOST_COOKIE:         "cookie",
	edgeHostReasonHOST_COOKIE_TAKEN:   "cookie_taken",
	edgeHostReasonHOST_GUEST:          "drop_guest",
	edgeHostReasonHOST_NO_GUEST:       "drop_no_guest",
	edgeHostReasonHOST_QUIET:          "quiet",
	edgeHostReasonHOST_METERED_SOURCE: "drop_metered_source",
	edgeHostReasonHOST_UNASKED:        "drop_unasked",
	edgeHostReasonHOST_FOREIGN:        "drop_foreign_source",
	edgeHostReasonHOST_PEER_FULL:      "drop_peer_full",
	edgeHostReasonHOST_ECHO:           "echo_cookie",
	edgeHostReasonHOST_UNTOLD:         "untold",
	edgeHostReasonHOST_LATER:          "later",
	edgeHostReasonHOST_ASKED:          "asked",
}

// Untold is how often a connection's process died while there was no room to tell: Walk finds those that are Untold.
func (e *Edge) Untold() (n uint64, err error) {
	var each []uint64
	err = e.maps.Drops.Lookup(uint32(edgeHostReasonHOST_UNTOLD), &each)
	for _, x := range each {
		n += x
	}
	return n, err
}

// Counters is how often each thing happened since the maps were made. Names that begin with drop_ are packets
// lost, by reason; the others are packets answered or handed on.
func (e *Edge) Counters() (map[string]uint64, error) {
	all := make(map[string]uint64, len(reasons))
	var each []uint64
	for i, name := range reasons {
		if name == "" {
			continue
		}
		if err := e.maps.Drops.Lookup(uint32(i), &each); err != nil {
			return nil, fmt.Errorf("host edge: read counter %s: %w", name, err)
		}
		for _, n := range each {
			all[name] += n
		}
	}
	return all, nil
}
