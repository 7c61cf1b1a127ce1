package hostd

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// A changeover is a host whose controller was just killed, at the door where commands come in. Each attempt to send a
// question takes the next of its controllers.
type changeover struct {
	c     *control
	tries []roundTripper
	asked int

	number string // of the order
}

func newChangeover(tries ...roundTripper) *changeover {
	x := &changeover{c: newControl(&daemon{}), tries: tries}
	x.c.reached, x.c.session, x.c.endpoint = true, true, "http://192.0.2.1:23728"
	x.c.client = &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		x.asked++
		return x.tries[min(x.asked, len(x.tries))-1](r)
	})}
	return x
}

// ask gives a command's question, and returns what the command is told and how long that took.
func (x *changeover) ask(method string) (said string, took time.Duration) {
	began := time.Now()
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", method, strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(api.OrderID, x.number)
	(&daemon{control: x.c}).adminProxy().ServeHTTP(w, r)
	return w.Body.String(), time.Since(began)
}

func unsent(*http.Request) (*http.Response, error) { return nil, net.ErrClosed }

func cutOff(r *http.Request) (*http.Response, error) {
	io.Copy(io.Discard, r.Body) // it is a strings.Reader
	return nil, errors.New("connection reset by peer")
}

func takes(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("took " + string(body)))}, err
}

// half is the beginning of an answer, of a controller that dies in the middle of it.
func half(r *http.Request) (*http.Response, error) {
	io.Copy(io.Discard, r.Body) // it is a strings.Reader
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(io.MultiReader(strings.NewReader("to"), iotest.ErrReader(io.ErrUnexpectedEOF)))}, nil
}

// An order with a number is sent again where both controllers know it from one that is new; else it is said that it may
// have been carried out.
func TestAnOrderWithANumberIsSentToTheNextController(t *testing.T) {
	for name, c := range map[string]struct {
		method, number string
		first, next    bool // know numbers
		want           string
		asked          int
	}{
		"both know it":             {apiv1connect.AdminSetWeightProcedure, api.NewOrderID(), true, true, "took {}", 2},
		"the first did not":        {apiv1connect.AdminSetWeightProcedure, api.NewOrderID(), false, true, "look before you try again", 1},
		"the next does not":        {apiv1connect.AdminSetWeightProcedure, api.NewOrderID(), true, false, "look before you try again", 1},
		"it has none":              {apiv1connect.AdminSetWeightProcedure, "", true, true, "look before you try again", 1},
		"it has a strange one":     {apiv1connect.AdminSetWeightProcedure, "1", true, true, "look before you try again", 1},
		"an order of many changes": {apiv1connect.AdminApplyProcedure, api.NewOrderID(), true, true, "look before you try again", 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var x *changeover
			x = newChangeover(func(r *http.Request) (*http.Response, error) {
				x.c.mu.Lock()
				x.c.once = c.next
				x.c.mu.Unlock()
				return cutOff(r)
			}, takes)
			x.c.once = c.first
			x.number = c.number
			if said, _ := x.ask(c.method); !strings.Contains(said, c.want) || x.asked != c.asked {
				t.Errorf("%s: %q after %d attempts, want %q after %d", name, said, x.asked, c.want, c.asked)
			}
		})
	}
}

// So is one whose answer breaks off: the command has not got the beginning of it yet.
func TestAnOrderWhoseAnswerBreaksOffIsSentToTheNextController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newChangeover(half, takes)
		x.c.once, x.number = true, api.NewOrderID()
		if said, _ := x.ask(apiv1connect.AdminSetWeightProcedure); said != "took {}" || x.asked != 2 {
			t.Errorf("%q after %d attempts", said, x.asked)
		}
	})
}

// Commands on a host outlive a change of controllers, and nothing is done twice.
func TestACommandWaitsForTheControllerThatTakesOver(t *testing.T) {
	const change, look = apiv1connect.AdminSetWeightProcedure, apiv1connect.AdminGetServiceProcedure
	for name, c := range map[string]struct {
		method string
		tries  []roundTripper
		want   string
		asked  int
	}{
		"what did not get out is sent to the next":    {change, []roundTripper{unsent, unsent, takes}, "took {}", 3},
		"what got out is not sent again":              {change, []roundTripper{cutOff, takes}, "it is not known whether it did this: look before you try again", 1},
		"what changes nothing is asked again, whole":  {look, []roundTripper{cutOff, unsent, cutOff, takes}, "took {}", 4},
		"half an answer is none":                      {look, []roundTripper{half, takes}, "took {}", 2},
		"what a controller says in time is passed on": {change, []roundTripper{takes}, "took {}", 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			x := newChangeover(c.tries...)
			if said, _ := x.ask(c.method); !strings.Contains(said, c.want) || x.asked != c.asked {
				t.Errorf("%s: %q after %d attempts, want %q after %d", name, said, x.asked, c.want, c.asked)
			}
		})
	}
}

func TestACommandWaitsForTheHostToJoinTheNextController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newChangeover(takes)
		x.c.session = false
		go func() {
			time.Sleep(5500 * time.Millisecond) // as long as etcd and the leader's lease take
			x.c.mu.Lock()
			x.c.session = true
			x.c.mu.Unlock()
		}()
		if said, took := x.ask(apiv1connect.AdminSetWeightProcedure); said != "took {}" || took < 5*time.Second {
			t.Errorf("after %v: %q; want the answer once the host has joined", took, said)
		}
	})
}

// Who waited in vain hears what was tried, and no controller that lives is blamed for it.
func TestACommandThatNobodyTookSaysWhatWasTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newChangeover(unsent)
		x.c.session, x.c.trouble = false, "dial tcp 192.0.2.1:23728: connect: connection refused"
		said, took := x.ask(apiv1connect.AdminSetWeightProcedure)
		if !strings.Contains(said, "no controller took this for 8s: the last one tried is at http://192.0.2.1:23728") || !strings.Contains(said, "connection refused") ||
			took < leaderWait || took > leaderWait+time.Second {
			t.Errorf("after %v: %q", took, said)
		}
	})
	synctest.Test(t, func(t *testing.T) { // one that answers, and does not take this host, answers commands too
		x := newChangeover(takes)
		x.c.session, x.c.answered = false, true
		if said, took := x.ask(apiv1connect.AdminGetStatusProcedure); said != "took {}" || took != 0 {
			t.Errorf("after %v: %q", took, said)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		x := newChangeover(unsent)
		x.c.reached, x.c.session, x.c.client = false, false, nil
		if said, took := x.ask(apiv1connect.AdminGetStatusProcedure); !strings.Contains(said, "no way to the controller yet") || took != 0 {
			t.Errorf("after %v: %q", took, said)
		}
	})
}

func TestAnAddressIsShownWithTheNameOfItsInterface(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://[fe80::1%251]:23728":     "http://[fe80::1%lo]:23728",
		"http://[fe80::1%2599999]:23728": "http://[fe80::1%99999]:23728",
		"http://[2001:db8::1]:23728":     "http://[2001:db8::1]:23728",
		"https://192.0.2.1:23728":        "https://192.0.2.1:23728",
		"unix:/run/x":                    "unix:/run/x",
		"":                               "",
	} {
		if got := plainZone(endpoint); got != want {
			t.Errorf("%s is shown as %s, want %s", endpoint, got, want)
		}
	}
}
