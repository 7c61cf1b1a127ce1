package emud

import (
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/fidelity"
	emudv1 "scaffold.dev/scaffold/internal/lab/emud/v1"
)

// fill gives every field of a value another one than zero, no two the same where their kind allows it.
func fill(t *testing.T, v reflect.Value, next *int) {
	t.Helper()
	*next++
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(0, int64(*next))))
		return
	case v.CanInt():
		v.SetInt(int64(*next))
		return
	case v.CanUint():
		v.SetUint(uint64(*next))
		return
	case v.CanFloat():
		v.SetFloat(float64(*next))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(string(rune('a' + *next%26)))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), next)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(t, v.Index(i), next)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), next)
		}
	default:
		t.Fatalf("a field of type %v: say here how it is filled", v.Type())
	}
}

// survives sends a value with nothing left out through a message, as bytes.
func survives[V any, M proto.Message](t *testing.T, to func(V) M, back func(M) V) {
	t.Helper()
	var want V
	fill(t, reflect.ValueOf(&want).Elem(), new(int))
	text, err := proto.Marshal(to(want))
	if err != nil {
		t.Fatal(err)
	}
	m := to(want).ProtoReflect().New().Interface().(M)
	if err := proto.Unmarshal(text, m); err != nil {
		t.Fatal(err)
	}
	if got := back(m); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwas %+v", got, want)
	}
	if got := back(m.ProtoReflect().Type().Zero().Interface().(M)); !reflect.ValueOf(got).IsZero() {
		t.Errorf("of no message: %+v", got)
	}
}

// A field that somebody adds to one of these values has to be added to its message, too.
func TestMessagesCarryAllOfAValue(t *testing.T) {
	survives(t, paramsMessage, paramsOf)
	survives(t, lineMessage, lineOf)
	survives(t, certificateMessage, certificateOf)
	survives(t, faultMessage, faultOf)
	survives(t, routesMessage, readRoutes)
}

func TestBoundsThatAreNotSaidAreTheUsual(t *testing.T) {
	rate := 0.25
	want := fidelity.Usual
	want.Rate = rate
	if got := boundsOf(&emudv1.Bounds{Rate: &rate}, fidelity.Usual); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
	if got := boundsOf(nil, fidelity.Usual); got != fidelity.Usual {
		t.Errorf("%+v", got)
	}
}

// An engine that a user built from another version may tell of more ends, or of none.
func TestALinkHasTwoEndsWhateverAnEngineSays(t *testing.T) {
	if s := linkOf(&emudv1.Link{Ends: make([]*emudv1.LinkEnd, 5)}); s.Lines != [2]emu.LineStats{} {
		t.Errorf("%+v", s)
	}
	if s := linkOf(nil); s.Link != 0 {
		t.Errorf("%+v", s)
	}
}
