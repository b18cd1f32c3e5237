package provide

import (
	"errors"
	"fmt"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/spelling"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

// Parse parses a kind that a user names; see [dependency.ParseKindRef].
func Parse(text string) (dependency.KindRef, error) {
	k, err := dependency.ParseKindRef(text)
	if err != nil {
		return k, ErrInvalidKind.New(nil, "%s", wordingOf(err))
	}
	return k, nil
}

// KindsIn returns the valid kinds in a list that is separated by commas.
func KindsIn(text string) []dependency.KindRef {
	var out []dependency.KindRef
	for part := range strings.SplitSeq(text, ",") {
		if k, err := dependency.ParseKindRef(strings.TrimSpace(part)); err == nil {
			out = append(out, k)
		}
	}
	return out
}

// wordingOf returns the text of an error without control characters of the input.
func wordingOf(err error) string { return strings.ToValidUTF8(err.Error(), "?") }

// Difference compares the schema of a kind in a candidate with its schema in the first candidate.
type Difference string

// Differences.
const (
	Unknown   Difference = "unknown"
	Equal     Difference = "equal"
	Superset  Difference = "superset"
	Different Difference = "different"
)

// An Option is a candidate among which a user selects.
type Option struct {
	Repository string     `json:"package"`
	Version    string     `json:"version,omitempty"`
	Publisher  string     `json:"publisher"`
	Source     string     `json:"source,omitempty"`
	Served     []string   `json:"served,omitempty"`
	Cost       int        `json:"kinds"`
	Schema     Difference `json:"schema"`
	Deprecated bool       `json:"deprecated,omitempty"`
	// Command selects the candidate.
	Command string `json:"command"`
}

// Ambiguity is the cause of AmbiguousKind.
type Ambiguity struct {
	Kind    dependency.KindRef
	Options []Option
	// Others is the number of candidates that are not in Options.
	Others int
}

// Error lists the candidates.
func (a *Ambiguity) Error() string {
	var texts []string
	for _, o := range a.Options {
		text := fmt.Sprintf(
			"%s %s by %s (%s, schema %s)", o.Repository, o.Version, o.Publisher, wording.Count(o.Cost, "kind"), o.Schema,
		)
		if o.Deprecated {
			text += ", deprecated"
		}
		texts = append(texts, text)
	}
	if a.Others > 0 {
		texts = append(texts, fmt.Sprintf("%d more", a.Others))
	}
	return strings.Join(texts, "; ")
}

// Commands returns the commands that select the candidates.
func (a *Ambiguity) Commands() []string {
	var out []string
	for _, o := range a.Options {
		out = append(out, "`"+o.Command+"`")
	}
	return out
}

// maxOptions limits the candidates in an error.
const maxOptions = 5

// Describe contains the parts of an error that depend on the caller.
type Describe struct {
	// Command returns the command that selects a candidate.
	Command func(Candidate) string
	// Schemas compares the schemas of candidates with the first one, by repository; nil if they are unknown.
	Schemas map[string]Difference
	// Alike returns known kinds with a similar name.
	Alike func(dependency.KindRef) []string
	// Unrecorded reports that the commands do not record the selection.
	Unrecorded bool
	// Unindexed reports that no index is configured.
	Unindexed bool
}

// Err returns AmbiguousKind or NoProvider, or nil if the ranking is decided.
func (r Ranking) Err(d Describe) error {
	switch {
	case r.Decided != "":
		return nil
	case len(r.Order) == 0:
		return r.noProvider(d)
	}
	a := &Ambiguity{Kind: r.Canonical(), Others: max(0, len(r.Order)-maxOptions)}
	for i, c := range r.Order[:min(len(r.Order), maxOptions)] {
		o := Option{
			Repository: c.Repository, Version: c.Version, Publisher: c.PublisherText(), Source: c.Source, Served: c.Served,
			Cost: c.Cost, Schema: Unknown, Deprecated: c.Deprecated, Command: d.Command(c),
		}
		if known, ok := d.Schemas[c.Repository]; ok {
			o.Schema = known
		}
		if i == 0 && o.Schema == Unknown && len(r.Order) == 1 {
			o.Schema = Equal
		}
		a.Options = append(a.Options, o)
	}
	what := fmt.Sprintf("%s provide %s", wording.Count(len(r.Order), "package"), a.Kind)
	switch {
	case len(r.Order) == 1 && r.Order[0].Downloaded:
		what = fmt.Sprintf("the package that provides %s is known only because it was downloaded before", a.Kind)
	case len(r.Order) == 1:
		what = fmt.Sprintf("it is not certain that the publisher of the package that provides %s owns the API group", a.Kind)
	}
	advice := "Select one: " + strings.Join(a.Commands(), " or ") + "."
	if !d.Unrecorded {
		advice += " The selection is recorded."
	}
	return ErrAmbiguous.New(a, "%s", what).WithDo("%s", advice)
}

// noProvider returns the error of a kind without candidates.
func (r Ranking) noProvider(d Describe) error {
	var why []string
	for _, c := range r.Dropped[:min(len(r.Dropped), maxOptions)] {
		why = append(why, c.Repository+": "+c.Why)
	}
	var cause error
	if len(why) > 0 {
		cause = errors.New(strings.Join(why, "; "))
	}
	text, advice := "no package that can be installed provides %s", ErrNoProvider.Fix
	if d.Unindexed {
		text += ", and no index is configured"
		advice = "Name the index of a registry, such as registry.example.com/index:main, with --index or XPKG_INDEX; `xpkg index build` creates one. Or install the package by its name."
	}
	failed := ErrNoProvider.New(cause, text, r.Kind).WithDo("%s", advice)
	if d.Alike == nil || len(why) > 0 {
		return failed
	}
	if alike := d.Alike(r.Kind); len(alike) > 0 {
		return failed.WithDo("Did you mean %s? %s", strings.Join(alike, " or "), advice)
	}
	return failed
}

// Choose returns the package that is selected for a kind without asking the user, or AmbiguousKind or NoProvider.
func Choose(q Request, candidates []Candidate, d Describe) (Candidate, Ranking, error) {
	r := Rank(q, candidates)
	if err := r.Err(d); err != nil {
		return Candidate{}, r, err
	}
	return r.Order[0], r, nil
}

// Alike returns the known kinds whose spelling is similar: kinds of the same group, or the same kind in other groups.
func Alike(kind dependency.KindRef, known []dependency.KindRef) []string {
	var texts, sameName []string
	for _, k := range known {
		texts = append(texts, k.WithoutVersion())
		if strings.EqualFold(k.Name, kind.Name) {
			sameName = append(sameName, k.WithoutVersion())
		}
	}
	if alike := spelling.Alike(kind.WithoutVersion(), texts); len(alike) > 0 {
		return alike
	}
	return sameName[:min(len(sameName), 3)]
}
