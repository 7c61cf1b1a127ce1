package documented

import (
	"strings"
	"testing"
)

func TestCommandsAreTakenApartAsAShellDoes(t *testing.T) {
	for line, want := range map[string]string{
		"sudo scaffold lab up two.yaml   # brings it up": "lab up two.yaml",
		"scaffold run --service web -- nginx -g 'a; b;'": "run --service web -- nginx -g a; b;",
		"scaffold export > services.yaml":                "export",
		"scaffold export | scaffold apply -f -":          "export,apply -f -",
		"cd x && ip netns exec web scaffold status":      "status",
		"adduser alice scaffold":                         "",
		"T=$(scaffold token create --role host)":         "token create --role host",
		"scaffold hostd 2> log":                          "hostd",
	} {
		var got []string
		for _, w := range Words(line) {
			if args := Program(w, "scaffold"); len(args) > 0 {
				got = append(got, strings.Join(args, " "))
			}
		}
		if strings.Join(got, ",") != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
