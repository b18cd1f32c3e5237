// Package migration moves the packages of a cluster from Crossplane core to the manager, and back.
//
// A plan is computed from the live cluster. Each of its steps can be repeated, and is done if the cluster already has
// the state that it produces. So a migration that was interrupted continues with a new plan.
package migration

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// Step is a part of a migration.
type Step struct {
	// Title is an imperative clause without a full stop.
	Title string `json:"title"`
	// Details are the objects that the step changes, and the effects.
	Details []string `json:"details,omitempty"`
	// Done reports that the cluster already has the state that the step produces.
	Done bool `json:"done"`
	// Run carries out the step, and returns when the cluster has its state. It can be repeated.
	Run func(ctx context.Context, report Report) error `json:"-"`
}

// Report reports what a running step waits for.
type Report func(format string, args ...any)

// Plan is a migration.
type Plan struct {
	Steps []*Step `json:"steps"`
	// Notes are sentences that a user has to know before the migration.
	Notes []string `json:"notes,omitempty"`
}

// Pending returns the number of steps that are not done.
func (p *Plan) Pending() int {
	n := 0
	for _, s := range p.Steps {
		if !s.Done {
			n++
		}
	}
	return n
}

// WriteText writes the plan for a terminal.
func (p *Plan) WriteText(w io.Writer) {
	var b strings.Builder
	for i, s := range p.Steps {
		state := ""
		if s.Done {
			state = " (done)"
		}
		fmt.Fprintf(&b, "%d. %s%s\n", i+1, s.Title, state)
		for _, d := range s.Details {
			fmt.Fprintf(&b, "   - %s\n", d)
		}
	}
	if p.Pending() == 0 {
		b.WriteString("\nNothing to do.\n")
	}
	if len(p.Notes) > 0 {
		b.WriteString("\n")
	}
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	fmt.Fprint(w, b.String())
}

// Run carries out the steps that are not done, in their order, each within a time limit. It calls completed after each
// of them, and stops at the first failure.
func (p *Plan) Run(ctx context.Context, limit time.Duration, report Report, completed func(*Step) error) error {
	for _, s := range p.Steps {
		if s.Done {
			continue
		}
		report("%s", s.Title)
		if err := s.runWithin(ctx, limit, report); err != nil {
			return fmt.Errorf("%s: %w", s.Title, err)
		}
		s.Done = true
		if err := completed(s); err != nil {
			return err
		}
	}
	return nil
}

func (s *Step) runWithin(ctx context.Context, limit time.Duration, report Report) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return s.Run(ctx, report)
}
