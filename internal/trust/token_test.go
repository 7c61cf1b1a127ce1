package trust

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"
)

func TestATokenIsReadAsItWasWritten(t *testing.T) {
	for _, addresses := range [][]string{nil, {"[2001:db8::1]:23728"}, {"10.0.0.1:23728", "c2.example:1"}} {
		want := NewToken(Host, Pin{1, 2, 3}, addresses...)
		got, err := ParseToken(" " + want.String() + "\n")
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v came back as %v, %v", want, got, err)
		}
		if !got.Secret.Fits(want.Secret.Hash()) || (TokenSecret{}).Fits(want.Secret.Hash()) {
			t.Error("the secret does not fit its own hash, or another one does")
		}
	}
}

func TestADamagedTokenIsNone(t *testing.T) {
	safety.Test(t, safety.Door)
	whole := NewToken(Host, Pin{9}).String()
	for i := range whole {
		for _, bad := range []string{whole[:i], whole[:i] + "A" + whole[i+1:], whole[:i] + "=" + whole[i:], whole[:i] + " " + whole[i+1:]} {
			if bad == whole {
				continue
			}
			if _, err := ParseToken(bad); !errors.Is(err, ErrToken) {
				t.Errorf("%q was taken for a token: %v", bad, err)
			} else if len(bad) > 30 && strings.Contains(err.Error(), bad[20:]) {
				t.Errorf("the error shows the secret: %v", err)
			}
		}
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(NewToken(Host, Pin{1}).String())
	f.Add(NewToken(Admin, Pin{2}, "a:1", "b:2").String())
	f.Add("scaffold1-AAAA")
	f.Fuzz(func(t *testing.T, s string) {
		token, err := ParseToken(s)
		if err != nil {
			if !errors.Is(err, ErrToken) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		again, err := ParseToken(token.String())
		if err != nil || !reflect.DeepEqual(again, token) || !bytes.Equal([]byte(token.String()), []byte(strings.TrimSpace(s))) {
			t.Fatalf("%q is read as %v, which is written %q, %v", s, token, token.String(), err)
		}
	})
}
