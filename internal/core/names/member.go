package names

import "fmt"

// CheckMember says what is wrong with the name of a host, a router, a controller or a person. All are refused alike,
// where they are typed: what nobody can join with is to be told before anything is done.
func CheckMember(name string) error {
	switch clean, err := Clean(name, ""); {
	case name == "":
		return fmt.Errorf("no name: want letters, digits and hyphens, in lower case, such as s1")
	case err != nil || clean != name:
		return fmt.Errorf("name %.80q: want letters, digits and hyphens, in lower case, such as s1", name)
	}
	return nil
}
