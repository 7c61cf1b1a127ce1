package names

import "maps"

// Applied is the mark of `scaffold apply` on a service: what it set last it also takes back, and what it
// did not set it leaves to those who did.
type Applied struct {
	Owner  string            `json:"owner"`            // whose files name the service
	Made   bool              `json:"made,omitempty"`   // apply created it, so prune may remove it
	Fields map[string]string `json:"fields,omitempty"` // what it set last, as text; weights as "weights.HOST"
}

// Owner is whose files name the service; "" where no files do.
func (r Record) Owner() string {
	if r.Applied == nil {
		return ""
	}
	return r.Applied.Owner
}

// Last is what apply set the field to last, where it did.
func (a *Applied) Last(field string) (text string, set bool) {
	if a != nil {
		text, set = a.Fields[field]
	}
	return text, set
}

// Same reports whether both marks are equal.
func (a *Applied) Same(b *Applied) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Owner == b.Owner && a.Made == b.Made && maps.Equal(a.Fields, b.Fields)
}
