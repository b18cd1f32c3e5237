package changepolicy

import (
	"fmt"
	"strings"
	"time"
)

// Asked is what the ChangePolicy asks of a change that would start now.
type Asked struct {
	// Closed is why the change cannot start now, as a clause, and OpensAt the time at which it can. A change that no time
	// is known for has only the reason.
	Closed  string     `json:"closed,omitempty"`
	OpensAt *time.Time `json:"opensAt,omitempty"`
	// People is the number of users who must approve the change, and Reasons why.
	People  int32    `json:"people,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
	// Watch is the time for which the packages must stay healthy, such as 10m0s.
	Watch string `json:"watch,omitempty"`
}

// IsZero reports whether nothing is asked.
func (a *Asked) IsZero() bool { return a.Closed == "" && a.People == 0 && a.Watch == "" }

// Texts returns the requirements of a policy as sentences without periods.
func (a *Asked) Texts() []string {
	var out []string
	switch {
	case a.OpensAt != nil:
		out = append(out, fmt.Sprintf("starts %s: %s", Format(*a.OpensAt), a.Closed))
	case a.Closed != "":
		out = append(out, "cannot start: "+a.Closed)
	}
	if a.People > 0 {
		out = append(out, fmt.Sprintf("needs the approval of %s: %s", People(a.People), strings.Join(a.Reasons, ", ")))
	}
	if a.Watch != "" {
		out = append(out, fmt.Sprintf("returns if a package does not stay healthy for %s", a.Watch))
	}
	return out
}
