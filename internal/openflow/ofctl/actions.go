package ofctl

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"scaffold.dev/scaffold/internal/openflow/ofp"
)

// ParseActions reads what is done to packets that match, which ParseMatch has read; "drop" is nothing.
func ParseActions(text string, m ofp.Match, ports Ports) ([]ofp.Action, error) {
	list, err := parseActions(strings.TrimSpace(text), m, ports)
	if err != nil {
		return nil, fmt.Errorf("actions %.80q: %w", text, err)
	}
	return list, nil
}

func parseActions(text string, m ofp.Match, ports Ports) (list []ofp.Action, err error) {
	switch {
	case len(text) > maxText:
		return nil, fmt.Errorf("%d characters: at most %d", len(text), maxText)
	case text == "drop":
		return nil, nil
	case text == "":
		return nil, errors.New("want for instance output:PORT, NORMAL or drop")
	}
	for word := range strings.SplitSeq(text, ",") {
		a, err := parseAction(strings.TrimSpace(word), ports)
		if err == nil {
			err = fits(a, m)
		}
		if err != nil {
			return nil, err
		}
		if push, is := a.(ofp.PushVLAN); is { // what follows may write the tag
			m = append(m[:len(m):len(m)], ofp.Uint(ofp.VLANVID, uint64(push.EtherType)))
		}
		list = append(list, a)
	}
	return list, nil
}

// fits says why an action cannot be done to packets that match.
func fits(a ofp.Action, m ofp.Match) error {
	var f ofp.Field
	switch a := a.(type) {
	case ofp.SetField:
		f = a.Field
	case ofp.DecTTL:
		f = ofp.IPTTL
	case ofp.PopVLAN:
		f = ofp.VLANVID
	}
	if f == ofp.VLANVID || f == ofp.VLANPCP {
		if o, said := m.Get(ofp.VLANVID); !said || o.Uint() == 0 {
			return fmt.Errorf("only tagged packets have a VLAN: the match must say so (vlan_vid=0x1000/0x1000), or push_vlan come first")
		}
		return nil
	}
	return allows(m, f)
}

func parseAction(word string, ports Ports) (ofp.Action, error) {
	name, arg := word, ""
	if at := strings.IndexAny(word, ":="); at >= 0 {
		name, arg = word[:at], word[at+1:]
	}
	switch strings.ToLower(name) {
	case "output":
		return output(arg, ports)
	case "set_field":
		return setField(arg, ports)
	case "mod_dl_src":
		return setTo(ofp.EthSrc, arg, ports)
	case "mod_dl_dst":
		return setTo(ofp.EthDst, arg, ports)
	case "set_queue":
		n, err := number(word, arg, 32)
		return ofp.SetQueue{Queue: uint32(n)}, err
	case "push_vlan":
		n, err := number(word, arg, 16)
		if err == nil && n != 0x8100 && n != 0x88a8 {
			err = fmt.Errorf("%.40q: want push_vlan:0x8100 or push_vlan:0x88a8", word)
		}
		return ofp.PushVLAN{EtherType: uint16(n)}, err
	}
	if arg == "" && !strings.ContainsAny(word, ":=") {
		return plain(word, ports)
	}
	return nil, fmt.Errorf("%.60q is no action that an operator's flow may do: want output:PORT, set_field:VALUE->FIELD, dec_ttl, push_vlan:0x8100, pop_vlan, set_queue:N, NORMAL, FLOOD, ALL, IN_PORT, LOCAL or drop", word)
}

// plain reads an action without an argument: a word of its own, or a port.
func plain(word string, ports Ports) (ofp.Action, error) {
	switch lower := strings.ToLower(word); lower {
	case "dec_ttl":
		return ofp.DecTTL{}, nil
	case "pop_vlan", "strip_vlan":
		return ofp.PopVLAN{}, nil
	case "drop":
		return nil, errors.New("drop stands alone")
	}
	return output(word, ports)
}

func output(text string, ports Ports) (ofp.Action, error) {
	if p, ok := ports[text]; ok {
		return ofp.Output{Port: p}, nil
	}
	if p, ok := reserved[strings.ToLower(text)]; ok {
		return ofp.Output{Port: p}, nil
	}
	if strings.EqualFold(text, "controller") {
		return nil, errors.New("packets go to the controller only where a module of it subscribes to them")
	}
	p, err := ports.parse(text)
	return ofp.Output{Port: p}, err
}

func setField(text string, ports Ports) (ofp.Action, error) {
	value, name, ok := strings.Cut(text, "->")
	if !ok {
		return nil, fmt.Errorf("set_field:%.60s: want set_field:VALUE->FIELD", text)
	}
	f, err := parseField(name)
	if err != nil {
		return nil, err
	}
	return setTo(f, value, ports)
}

// readOnly are fields that are not part of the packet's content.
var readOnly = map[ofp.Field]bool{ofp.InPort: true, ofp.InPhyPort: true, ofp.EthType: true, ofp.IPProto: true, ofp.PacketType: true,
	ofp.ActSetOut: true, ofp.IPFrag: true, ofp.TCPFlags: true, ofp.IPv6ExtHdr: true}

func setTo(f ofp.Field, value string, ports Ports) (ofp.Action, error) {
	if readOnly[f] {
		return nil, fmt.Errorf("%v cannot be written", f)
	}
	o, err := parseValue(f, value, ports)
	if err != nil {
		return nil, err
	}
	return ofp.SetField{OXM: o}, nil
}

func number(word, text string, bits int) (uint64, error) {
	n, err := strconv.ParseUint(text, 0, bits)
	if err != nil {
		return 0, fmt.Errorf("%.40q: want a number behind the colon", word)
	}
	return n, nil
}
