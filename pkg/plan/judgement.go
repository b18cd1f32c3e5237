package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/wording"
)

// BreaksObjects is a CRD, XRD or MRD whose change breaks custom resources, or can break some that cannot be read.
const BreaksObjects Cause = "BreaksObjects"

// Unread is the rule of custom resources that cannot be read.
const Unread = "Unread"

// Judgement is the effect of the change of a CRD on its custom resources.
type Judgement struct {
	CRD  string `json:"crd"`
	Kind string `json:"kind"`
	// Version is the API version in which the custom resources were read.
	Version string `json:"version"`
	// Objects is the number of custom resources.
	Objects int `json:"objects"`
	// Broken is the number of custom resources that lose values or that the API server rejects, without those of which a
	// user accepts that. Accepted is the number of these, and Tolerated the number of those that may keep values which new
	// ones may not have.
	Broken    int `json:"broken,omitempty"`
	Accepted  int `json:"accepted,omitempty"`
	Tolerated int `json:"tolerated,omitempty"`
	// Unknown is the reason why the custom resources could not be read, or empty.
	Unknown string `json:"unknown,omitempty"`
	// Findings are the rules that custom resources break.
	Findings []JudgedRule `json:"findings,omitempty"`
	// Unaffected are the breaking changes that affect no custom resource, as clauses.
	Unaffected []string `json:"unaffected,omitempty"`
	// named is the number of names in Findings.
	named int
}

// JudgedRule is a rule that custom resources of a kind break.
type JudgedRule struct {
	// Rule is the type of the change of the schema, as package crddiff returns it, or another name.
	Rule string `json:"rule"`
	// Path is the path of the field; empty for the object itself.
	Path string `json:"path,omitempty"`
	Text string `json:"text"`
	// Tolerated reports that the objects stay as they are, and Accepted that a user accepts that they break.
	Tolerated bool `json:"tolerated,omitempty"`
	Accepted  bool `json:"accepted,omitempty"`
	// Count is the number of objects, and Objects are the names of some of them, with their namespaces: at most
	// MaxJudgedNames of a kind.
	Count   int      `json:"count"`
	Objects []string `json:"objects,omitempty"`
}

const (
	// MaxJudgedNames limits the names of the custom resources of a kind in a Judgement.
	MaxJudgedNames = 1000
	// maxNamesInText limits the names in a message, and maxRulesInText the rules.
	maxNamesInText, maxRulesInText = 10, 3
)

// Add adds a custom resource with the rules that it breaks, of which Count and Objects are not set.
func (j *Judgement) Add(name string, broken []JudgedRule) {
	j.Objects++
	var breaks, accepted, tolerated bool
	counted := map[int]bool{}
	for _, b := range broken {
		switch {
		case b.Tolerated:
			tolerated = true
		case b.Accepted:
			accepted = true
		default:
			breaks = true
		}
		i := j.rule(b)
		if r := &j.Findings[i]; !counted[i] {
			counted[i] = true
			r.Count++
			if j.named < MaxJudgedNames {
				r.Objects, j.named = append(r.Objects, name), j.named+1
			}
		}
	}
	switch {
	case breaks:
		j.Broken++
	case accepted:
		j.Accepted++
	case tolerated:
		j.Tolerated++
	}
}

// rule returns the index of the rule of the judgement that stands for a rule that an object breaks. The text for the
// first object stands for all.
func (j *Judgement) rule(b JudgedRule) int {
	i := slices.IndexFunc(j.Findings, func(f JudgedRule) bool {
		return f.Rule == b.Rule && f.Path == b.Path && f.Tolerated == b.Tolerated
	})
	if i < 0 {
		i = len(j.Findings)
		j.Findings = append(j.Findings, b)
	}
	return i
}

// Sort orders the rules: those that break objects first.
func (j *Judgement) Sort() {
	rank := func(r JudgedRule) int {
		switch {
		case r.Tolerated:
			return 2
		case r.Accepted:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(j.Findings, func(a, b JudgedRule) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Rule, b.Rule))
	})
}

// Unaccepted returns the rules that custom resources break and that no user accepts, as items of a consent:
// "CRD/RULE".
func (j *Judgement) Unaccepted() []string {
	var out []string
	for _, f := range j.Findings {
		if item := j.CRD + "/" + f.Rule; !f.Tolerated && !f.Accepted && !slices.Contains(out, item) {
			out = append(out, item)
		}
	}
	return out
}

// Refusal returns the refusal of the object that changes the CRD, if it breaks custom resources. The remedy is not set.
func (j *Judgement) Refusal(ref Ref) (Refusal, bool) {
	if len(j.Unaccepted()) == 0 {
		return Refusal{}, false
	}
	of := ref.Kind + " " + ref.Name
	if j.CRD != ref.Name {
		of += " changes " + DefinitionKind + " " + j.CRD + ", which"
	}
	r := Refusal{Ref: ref, Cause: BreaksObjects, Reason: of + " " + j.breaks()}
	if j.Unknown != "" {
		r.Reason = fmt.Sprintf("%s can break %s, which cannot be read: %s", of, plural(j.Kind), j.Unknown)
	}
	return r, true
}

// breaks names the objects that break and that nobody accepts.
func (j *Judgement) breaks() string {
	return fmt.Sprintf("breaks %d of %d %s: %s", j.Broken, j.Objects, plural(j.Kind), describe(j.Findings, func(f JudgedRule) bool {
		return !f.Tolerated && !f.Accepted
	}))
}

// describe names the objects of some rules, and what happens to them.
func describe(all []JudgedRule, which func(JudgedRule) bool) string {
	names := maxNamesInText
	var parts []string
	for _, f := range all {
		if !which(f) {
			continue
		}
		of := wording.Count(f.Count, "object")
		if most := min(names, len(f.Objects)); most > 0 {
			names -= most
			of = f.names(most)
		}
		parts = append(parts, of+": "+f.String())
	}
	return wording.Few(parts, maxRulesInText, "; ")
}

// names returns the first names of the objects of a rule.
func (f JudgedRule) names(most int) string {
	out := strings.Join(f.Objects[:most], ", ")
	if rest := f.Count - most; rest > 0 {
		out += fmt.Sprintf(" and %d more", rest)
	}
	return out
}

// String returns the rule as a clause.
func (f JudgedRule) String() string {
	if f.Path == "" {
		return "the object " + f.Text
	}
	return f.Path + " " + f.Text
}

// plural returns the name of a kind for several objects.
func plural(kind string) string {
	stem, endsInY := strings.CutSuffix(kind, "y")
	switch {
	case endsInY && stem != "" && !strings.ContainsAny(stem[len(stem)-1:], "aeiou"):
		return stem + "ies"
	case slices.ContainsFunc([]string{"s", "x", "ch", "sh"}, func(end string) bool { return strings.HasSuffix(kind, end) }):
		return kind + "es"
	}
	return kind + "s"
}

// Notes returns sentences about the effect on custom resources, without those of a refusal.
func (j *Judgement) Notes() []string {
	var out []string
	note := func(format string, args ...any) {
		out = append(out, fmt.Sprintf("%s: "+format, append([]any{j.Kind}, args...)...))
	}
	count := func(n int) string { return fmt.Sprintf("%d of %s", n, wording.Count(j.Objects, "object")) }
	switch {
	case j.Unknown != "":
		note("its custom resources were not judged: %s", j.Unknown)
	case j.Objects > 0 && len(j.Unaffected) == 1 && strings.HasSuffix(j.Unaffected[0], " was removed"):
		note("%s; none of %s has it", j.Unaffected[0], wording.Count(j.Objects, "object"))
	case j.Objects > 0 && len(j.Unaffected) > 0:
		note(
			"%s; none of %s is affected", wording.Few(j.Unaffected, maxRulesInText, ", "), wording.Count(j.Objects, "object"),
		)
	}
	if j.Accepted > 0 {
		note("%s break, which is accepted: %s", count(j.Accepted), describe(j.Findings, func(f JudgedRule) bool {
			return f.Accepted
		}))
	}
	if j.Tolerated > 0 {
		note("%s keep values that new objects may not have: %s", count(j.Tolerated), describe(j.Findings, func(f JudgedRule) bool {
			return f.Tolerated
		}))
	}
	return out
}
