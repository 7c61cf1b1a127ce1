package programs

import (
	"fmt"
	"strings"
	"testing"
)

const mosquittoConf = `
listener 1883 %[2]s
allow_anonymous true
persistence true
persistence_location %[1]s/
`

// mosquitto is one broker: topics are its state.
func (s *service) mosquitto(host string) server {
	dir := place(s.t)
	return s.own(host, dir, "mosquitto", "-c", put(s.t, dir, "mosquitto.conf", fmt.Sprintf(mosquittoConf, dir, s.addr)))
}

func TestMosquitto(t *testing.T) {
	s := newService(t, "mqtt")
	s.mosquitto("s1")
	s.serving("tcp", 1883)
	client(t, "mosquitto_pub", "-h", s.host, "-q", "1", "-r", "-t", "kept", "-m", "retained")
	if out := client(t, "mosquitto_sub", "-h", s.host, "-q", "1", "-t", "kept", "-C", "1"); out != "retained\n" {
		t.Errorf("a retained message: %q", out)
	}
	// A subscriber with a session of its own gets what was published while it was away.
	sub := []string{"mosquitto_sub", "-h", s.host, "-q", "1", "-i", "reader", "-c", "-t", "news"}
	client(t, append(sub, "-E")...)
	for i := range 20 {
		client(t, "mosquitto_pub", "-h", s.host, "-q", "1", "-t", "news", "-m", fmt.Sprint(i))
	}
	got := strings.Fields(client(t, append(sub, "-C", "20")...))
	for i, text := range got {
		if text != fmt.Sprint(i) {
			t.Fatalf("messages came as %v", got)
		}
	}
	if len(got) != 20 {
		t.Errorf("%d of 20 messages came", len(got))
	}
}
