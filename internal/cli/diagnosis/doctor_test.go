package diagnosis

import (
	"errors"
	"testing"

	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/operate/doctor"
)

// TestDoctorEndsWithASentence: one that is not root is told that he does not see all, not that Scaffold cannot run.
func TestDoctorEndsWithASentence(t *testing.T) {
	for _, c := range []struct {
		state      doctor.State
		root       bool
		code       exit.Code
		says, hint string
	}{
		{doctor.Good, true, 0, "", ""},
		{doctor.Note, false, 0, "", ""},
		{doctor.Missing, true, exit.Missing, `Scaffold cannot run here: see "missing" above`, ""},
		{doctor.Missing, false, exit.Missing, "an ordinary user sees not all of it: run this as root to check whether Scaffold can run here", "try `sudo scaffold doctor`"},
		{doctor.InWay, true, exit.Unmet, `flows will break here: see "in way" above`, ""},
		{doctor.InWay, false, exit.Unmet, `flows will break here: see "in way" above`, ""},
	} {
		err := verdict(c.state, c.root)
		var known *exit.Error
		switch errors.As(err, &known); {
		case c.says == "" && err != nil:
			t.Errorf("%+v: %v", c, err)
		case c.says != "" && (known == nil || known.Code != c.code || known.Error() != c.says || known.Hint != c.hint):
			t.Errorf("%+v: %v", c, err)
		}
	}
}
