package ofctl

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

var ports = Ports{"to-s1": 3, "eth0": 1, "7": 2}

// good is what operators may type, and how it is written.
var good = []struct{ match, actions, want string }{
	{"", "NORMAL", "any NORMAL"},
	{"any", "drop", "any drop"},
	{"ipv6_dst=fd5d::/64,tcp_dst=80", "output:to-s1", "eth_type=0x86dd,ip_proto=6,ipv6_dst=fd5d::/64,tcp_dst=80 output:to-s1"},
	{"in_port=to-s1, udp6 ,udp_dst=53", "set_field:fd5d::1->ipv6_dst,dec_ttl,output=eth0", "in_port=to-s1,eth_type=0x86dd,ip_proto=17,udp_dst=53 set_field:fd5d::1->ipv6_dst,dec_ttl,output:eth0"},
	{"in_port=7", "7,in_port,FLOOD,all,LOCAL", "in_port=7 output:7,IN_PORT,FLOOD,ALL,LOCAL"},
	{"in_port=1,dl_src=02:00:00:00:00:01", "1", "in_port=eth0,eth_src=02:00:00:00:00:01 output:eth0"},
	{"eth_dst=01:00:00:00:00:00/01:00:00:00:00:00", "mod_dl_dst:2:0:0:0:0:9,9", "eth_dst=01:00:00:00:00:00/01:00:00:00:00:00 set_field:02:00:00:00:00:09->eth_dst,output:9"},
	{"nw_dst=10.0.0.0/8,nw_proto=17", "drop", "eth_type=0x800,ip_dst=10.0.0.0/8,ip_proto=17 drop"},
	{"dl_vlan=10", "pop_vlan,NORMAL", "vlan_vid=0x100a pop_vlan,NORMAL"},
	{"arp,arp_op=1", "push_vlan:0x8100,set_field:0x100a->vlan_vid,output:1", "eth_type=0x806,arp_op=1 push_vlan:0x8100,set_field:0x100a->vlan_vid,output:eth0"},
	{"icmpv6_type=135,nd_target=fe80::1", "set_queue:7,normal", "eth_type=0x86dd,ip_proto=58,icmpv6_type=135,nd_target=fe80::1 set_queue:7,NORMAL"},
	{"nd_target=fe80::1,icmpv6_type=135", "drop", "eth_type=0x86dd,ip_proto=58,icmpv6_type=135,nd_target=fe80::1 drop"},
	{"tcp6,tcp_dst=0x50/0xfff0", "drop", "eth_type=0x86dd,ip_proto=6,tcp_dst=0x50/0xfff0 drop"},
	{"ipv6_src=::1/::ff", "drop", "eth_type=0x86dd,ipv6_src=::1/::ff drop"},
	{"ipv6_dst=fd5d::1/128,reg3=5", "drop", "reg3=0x5,eth_type=0x86dd,ipv6_dst=fd5d::1 drop"},
}

func TestWhatOperatorsTypeIsUnderstood(t *testing.T) {
	for _, c := range good {
		m, err := ParseMatch(c.match, ports)
		if err != nil {
			t.Errorf("%q: %v", c.match, err)
			continue
		}
		as, err := ParseActions(c.actions, m, ports)
		if err != nil {
			t.Errorf("%q: %v", c.actions, err)
		}
		if got := Match(m, ports) + " " + Actions(as, ports); !sameWords(got, c.want) {
			t.Errorf("%q %q is read as\n%s, want\n%s", c.match, c.actions, got, c.want)
		}
		if _, err := (ofp.Message{Version: ofp.V15, Body: ofp.FlowMod{Match: m, Instructions: ofp.Apply(as...)}}).Append(nil); err != nil {
			t.Errorf("%q %q cannot be said: %v", c.match, c.actions, err)
		}
	}
}

// sameWords leaves the order of a match's fields free, which needs decide.
func sameWords(a, b string) bool {
	count := func(s string) map[string]int {
		words := map[string]int{}
		for _, w := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' }) {
			words[w]++
		}
		return words
	}
	return reflect.DeepEqual(count(a), count(b))
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	for _, c := range []struct{ match, actions, want string }{
		{"tcp_dst=80", "drop", "it needs to say ip or ipv6"},
		{"ip,ipv6_dst=fd5d::1", "drop", "ipv6_dst is not in packets of ip"},
		{"arp,tcp_dst=80", "drop", "tcp_dst is not in packets of arp"},
		{"udp6,tcp_dst=80", "drop", "tcp_dst needs protocol 6, and it says ip_proto=17"},
		{"ipv6,ip", "drop", "eth_type is said twice: eth_type=0x86dd and eth_type=0x800"},
		{"tcp6,tcp_dst=80,tcp_dst=81", "drop", "said twice"},
		{"tcp6,tcp_dst=65536", "drop", "want a number that fits into 2 bytes"},
		{"tcp6,tcp_dst=http", "drop", "want a number that fits into 2 bytes"},
		{"ipv6_dst=10.0.0.1", "drop", "want an address of 16 bytes"},
		{"ipv6_dst=fe80::1%eth0", "drop", "want an address of 16 bytes"},
		{"ipv6_dst=fd5d::/129", "drop", "a prefix of 129 bits"},
		{"eth_src=02:00:00:00:00", "drop", "want a hardware address as"},
		{"eth_src=02:00:00:00:00:001", "drop", "want a hardware address as"},
		{"in_port=eth9", "drop", `the switch has no port "eth9": it has 7, eth0, to-s1`},
		{"in_port=0", "drop", "no port"},
		{"frobnicate=1", "drop", `"frobnicate" is no field`},
		{"frobnicate", "drop", "want FIELD=VALUE"},
		{"ipv6,", "drop", "want FIELD=VALUE"},
		{"dl_vlan=4096", "drop", "want a VLAN's number"},
		{strings.Repeat("x", 2000), "drop", "2000 characters"},
		{"any", "", "want for instance output:PORT"},
		{"any", "output:eth9", "the switch has no port"},
		{"any", "output:", "no port"},
		{"any", "controller", "where a module of it subscribes"},
		{"any", "output:CONTROLLER", "where a module of it subscribes"},
		{"any", "group:5", "is no action that an operator's flow may do"},
		{"any", "goto_table:10", "is no action that"},
		{"any", "resubmit(,10)", "no port"},
		{"any", "NORMAL,drop", "drop stands alone"},
		{"any", "set_field:fd5d::1->ipv6_dst", "ipv6_dst is only in packets of ipv6: the match must say so"},
		{"ipv6", "set_field:80->tcp_dst", "tcp_dst is only in packets of protocol 6"},
		{"ipv6", "set_field:6->ip_proto", "ip_proto cannot be written"},
		{"ipv6", "set_field:fd5d::1", "want set_field:VALUE->FIELD"},
		{"any", "dec_ttl", "only in packets of ip or ipv6"},
		{"any", "pop_vlan", "only tagged packets"},
		{"any", "push_vlan:1", "want push_vlan:0x8100"},
		{"any", "set_queue:x", "want a number behind the colon"},
		{"any", strings.Repeat("x", 2000), "2000 characters"},
	} {
		m, err := ParseMatch(c.match, ports)
		if err == nil {
			_, err = ParseActions(c.actions, m, ports)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q %.60q: %v, want %q", c.match, c.actions, err, c.want)
		}
	}
}

func TestWhateverASwitchHoldsIsShown(t *testing.T) {
	got := Instructions([]ofp.Instruction{
		ofp.MeterInstruction{ID: 5}, ofp.ApplyActions{Actions: []ofp.Action{ofp.Group{ID: 7}, ofp.MeterAction{ID: 8}, ofp.Resubmit{Table: 3},
			ofp.Output{Port: ofp.PortController}, ofp.CopyField{Bits: 64, Src: ofp.IPv6Src, Dst: ofp.PacketReg(0)}, ofp.OtherAction{Kind: 99}}},
		ofp.WriteMetadata{Metadata: 1, Mask: 3}, ofp.ClearActions{}, ofp.WriteActions{Actions: []ofp.Action{ofp.Output{Port: 3}}}, ofp.GotoTable{Table: 9},
		ofp.OtherInstruction{Kind: 77},
	}, ports)
	want := "meter:5,group:7,meter:8,resubmit(,3),CONTROLLER,move:ipv6_src[0..63]->xreg0[0..63],action(action type 99 with 0 bytes)," +
		"write_metadata:0x1/0x3,clear_actions,write_actions(output:to-s1),goto_table:9,instruction(ofp.OtherInstruction)"
	if got != want {
		t.Errorf("shown as\n%s, want\n%s", got, want)
	}
	if got := Instructions(nil, nil) + " " + Match(nil, nil); got != "drop any" {
		t.Errorf("nothing is shown as %s", got)
	}
}

// What is read can be written, and means the same when it is read again.
func FuzzParse(f *testing.F) {
	for _, seed := range [][2]string{{"ipv6_dst=fd5d::/64,tcp_dst=80", "set_field:fd5d::1->ipv6_dst,output:to-s1"}, {"dl_vlan=3", "pop_vlan,NORMAL"},
		{"in_port=7,ipv6_src=::1/::ff", "drop"}, {"reg1=0x10/0xf0,eth_type=0x800/0xff00", "set_field:1/1->reg2,all"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, match, actions string) {
		m, err := ParseMatch(match, ports)
		if err != nil {
			return
		}
		as, err := ParseActions(actions, m, ports)
		if err != nil {
			return
		}
		text := fmt.Sprintf("%q %q", Match(m, ports), Actions(as, ports))
		if len(text) > maxText {
			return
		}
		m2, err := ParseMatch(Match(m, ports), ports)
		if err != nil || !reflect.DeepEqual(m, m2) {
			t.Fatalf("%q %q is written as %s, whose match is read as %v, %v", match, actions, text, m2, err)
		}
		as2, err := ParseActions(Actions(as, ports), m2, ports)
		if err != nil || !reflect.DeepEqual(as, as2) {
			t.Fatalf("%q %q is written as %s, whose actions are read as %v, %v", match, actions, text, as2, err)
		}
		if _, err := (ofp.Message{Version: ofp.V15, Body: ofp.FlowMod{Match: m, Instructions: ofp.Apply(as...)}}).Append(nil); err != nil {
			t.Fatalf("%s cannot be said: %v", text, err)
		}
	})
}
