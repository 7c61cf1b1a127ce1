package switchd

import (
	"reflect"
	"strings"
	"testing"
)

func TestSwitchesAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]Switch{
		"r1=0000000000000007":              {Name: "r1", Datapath: 7, Service: true},
		"r1=0xab,service=false":            {Name: "r1", Datapath: 0xab},
		"r1=7,mtu=to-r2:1400,mtu=a:b:1280": {Name: "r1", Datapath: 7, Service: true, MTUs: map[string]int{"to-r2": 1400, "a:b": 1280}},
		"edge-2=ab,block=7,service=true":   {Name: "edge-2", Datapath: 0xab, Service: true, Block: 7},
	} {
		if got, err := ParseSwitch(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, why := range map[string]string{
		"":                     "want NAME",
		"r1":                   "want NAME",
		"R1=7":                 "want NAME",
		"r1=0":                 "not all 0",
		"r1=xyz":               "hexadecimal",
		"r1=10000000000000000": "hexadecimal",
		"r1=7,block=0":         "1 to 255",
		"r1=7,block=256":       "1 to 255",
		"r1=7,service=maybe":   "true or false",
		"r1=7,mtu=1400":        "PORT:BYTES",
		"r1=7,mtu=a:100":       "1280 to",
		"r1=7,colour=red":      "none of service, block, mtu",
		"r1=7,":                "none of service, block, mtu",
	} {
		if got, err := ParseSwitch(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: got %+v, %v, want an error about %q", text, got, err, why)
		}
	}
}

func TestTheSameSwitchIsNotListedTwice(t *testing.T) {
	for _, list := range [][]Switch{{{Name: "a", Datapath: 1}, {Name: "a", Datapath: 2}}, {{Name: "a", Datapath: 1}, {Name: "b", Datapath: 1}}} {
		c := Config{Controller: "unix:/x", Switches: list}
		if c.Check() == nil {
			t.Errorf("%v was taken", list)
		}
	}
}
