package solver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/dependency"
)

const (
	// lineLength is the maximum length of a line.
	lineLength = 200
	// maxFacts is the number of requirements that are listed without a derivation.
	maxFacts = 8
	// maxSteps is the maximum number of steps of a derivation that is shown.
	maxSteps = 8

	indent     = "  "
	deepIndent = "    "
)

// reporter writes the explanation of a proof.
type reporter struct {
	*search
	proof   *incompatibility
	facts   []*incompatibility
	order   []dependency.Root        // as the caller requested them
	uses    map[*incompatibility]int // number of uses of each conclusion
	numbers map[*incompatibility]int // of the written steps
	refers  map[int]bool             // steps to which later ones refer
	steps   []step
}

// step is one conclusion of a derivation with its reasons.
type step struct {
	conclusion string
	reasons    []string
}

func newReporter(s *search, proof *incompatibility, order []dependency.Root) *reporter {
	r := &reporter{search: s, proof: proof, order: order}
	for _, c := range proofFacts(proof) {
		if c.cause.kind != required {
			r.facts = append(r.facts, c)
		}
	}
	return r
}

// lines returns the explanation: a heading, and one line for each side of the conflict. A
// conflict with many requirements is explained step by step.
func (r *reporter) lines(core []dependency.Root) []string {
	out := []string{r.heading(core) + ":"}
	if len(r.facts) > maxFacts {
		if derivation := r.derivation(); derivation != nil {
			return append(out, derivation...)
		}
	}
	chains := r.chains(r.facts)
	for i, chain := range chains {
		if i == maxFacts && len(chains) > i+1 {
			return append(out, fmt.Sprintf("%sand %s", indent, wording.Count(len(chains)-i, "more requirement")))
		}
		out = append(out, chain.lines()...)
	}
	return out
}

// heading returns the heading of the conflict.
func (r *reporter) heading(core []dependency.Root) string {
	if len(core) == 1 {
		root := core[0]
		return strings.TrimSpace(root.Package+" "+shorten(root.Constraint)) + requestedBy(root) +
			" cannot be installed at all"
	}
	if v := r.contested(); v != nil {
		return "No version of " + v.name + " satisfies every requirement"
	}
	return "These requirements cannot all be satisfied"
}

func requestedBy(r dependency.Root) string {
	if r.By == "" {
		return ""
	}
	return " (requested by " + r.By + ")"
}

// contested returns the package of which the facts exclude every version, or nil.
func (r *reporter) contested() *variable {
	allowed := map[int]set{}
	for _, c := range r.facts {
		for _, t := range c.terms {
			if c.isDependency() && t.pkg != c.cause.to || t.pkg == 0 {
				continue
			}
			left := r.variables[t.pkg].all.without(t.set).without(single(r.variables[t.pkg].size, 0))
			if had, ok := allowed[t.pkg]; ok {
				left = had.and(left)
			}
			allowed[t.pkg] = left
		}
	}
	for n := range r.variables {
		if left, ok := allowed[n]; ok && left.empty() {
			return r.variables[n]
		}
	}
	return nil
}

// chain is a requirement followed by the requirements that it leads to.
type chain struct {
	root  int // position of the root in the request
	parts []string
}

// lines returns the chain in one line, or in several if it is long.
func (c chain) lines() []string {
	if line := indent + strings.Join(c.parts, ", which "); len(line) <= lineLength {
		return []string{line}
	}
	text := strings.NewReplacer(", which ", ",\n"+deepIndent+"which ", ", whose ", ",\n"+deepIndent+"whose ").
		Replace(strings.Join(c.parts, ", which "))
	return strings.Split(indent+text, "\n")
}

// chains orders facts so that each chain starts with a root and continues with the
// dependencies of the version that it leads to, in the order of the request.
func (r *reporter) chains(facts []*incompatibility) []chain {
	left := slices.Clone(facts)
	slices.SortStableFunc(left, func(a, b *incompatibility) int { return cmp.Compare(r.position(a), r.position(b)) })
	var out []chain
	for len(left) > 0 {
		// Start with a fact that no other fact leads to.
		at := max(0, slices.IndexFunc(left, func(c *incompatibility) bool {
			return !slices.ContainsFunc(left, func(before *incompatibility) bool { return before != c && r.leadsTo(before, c) })
		}))
		c := left[at]
		next := chain{root: r.position(c), parts: []string{r.describeFact(c)}}
		left = slices.Delete(left, at, at+1)
		for {
			at := slices.IndexFunc(left, func(next *incompatibility) bool { return r.leadsTo(c, next) })
			if at < 0 {
				break
			}
			c = left[at]
			next.parts = append(next.parts, r.requires(c))
			left = slices.Delete(left, at, at+1)
		}
		if !slices.ContainsFunc(out, func(o chain) bool { return slices.Equal(o.parts, next.parts) }) {
			out = append(out, next)
		}
	}
	slices.SortStableFunc(out, func(a, b chain) int { return cmp.Compare(a.root, b.root) })
	return out
}

// position returns the position of a root in the request; other facts come later.
func (r *reporter) position(c *incompatibility) int {
	if c.cause.kind != rootRequirement {
		return len(r.order)
	}
	return slices.Index(r.order, r.roots[c.cause.root])
}

// leadsTo reports whether the next fact is about a dependency of every version that a
// fact allows.
func (r *reporter) leadsTo(c, next *incompatibility) bool {
	to := r.target(c)
	if to <= 0 || !next.isDependency() || next.cause.from != to || next.cause.to == to {
		return false
	}
	left, ok := c.find(to)
	have, _ := next.find(to)
	return ok && r.variables[to].all.without(left.set).subset(have.set)
}

// target returns the package that a fact requires, or -1.
func (r *reporter) target(c *incompatibility) int {
	switch c.cause.kind {
	case rootRequirement:
		return r.search.numbers[r.roots[c.cause.root].Package]
	case requiredDependency:
		if c.cause.from != c.cause.to {
			return c.cause.to
		}
	}
	return -1
}

// derivation returns the steps of the proof, or nil if there are too many.
func (r *reporter) derivation() []string {
	r.uses, r.numbers, r.refers, r.steps = map[*incompatibility]int{}, map[*incompatibility]int{}, map[int]bool{}, nil
	proof := withoutRequired(r.proof)
	if proof.cause.kind != derived {
		return nil
	}
	r.countUses(proof)
	r.writeSteps(proof)
	if len(r.steps) > maxSteps {
		return nil
	}
	var out []string
	for i, s := range r.steps {
		number := ""
		if r.refers[i+1] {
			number = fmt.Sprintf("(%d) ", i+1)
		}
		out = append(out, indent+number+s.conclusion+", because")
		for j, reason := range s.reasons {
			end := ","
			if j == len(s.reasons)-1 {
				end = ""
			}
			out = append(out, deepIndent+reason+end)
		}
	}
	return out
}

// withoutRequired omits the trivial step that the problem must be solved.
func withoutRequired(c *incompatibility) *incompatibility {
	for c.cause.kind == derived {
		switch {
		case c.cause.left.cause.kind == required:
			c = c.cause.right
		case c.cause.right.cause.kind == required:
			c = c.cause.left
		default:
			return c
		}
	}
	return c
}

func premises(c *incompatibility) []*incompatibility {
	return []*incompatibility{withoutRequired(c.cause.left), withoutRequired(c.cause.right)}
}

func (r *reporter) countUses(c *incompatibility) {
	open := []*incompatibility{c}
	for len(open) > 0 {
		c := open[len(open)-1]
		open = open[:len(open)-1]
		r.uses[c]++
		if c.cause.kind == derived && r.uses[c] == 1 {
			open = append(open, premises(c)...)
		}
	}
}

// gather returns the facts and conclusions from which a conclusion follows. It includes
// the facts and conclusions of premises that are used only here, up to a readable number.
func (r *reporter) gather(c *incompatibility) (facts, conclusions []*incompatibility) {
	const most = 6
	open := premises(c)
	for len(open) > 0 {
		p := open[0]
		open = open[1:]
		switch {
		case p.cause.kind != derived:
			if !slices.Contains(facts, p) {
				facts = append(facts, p)
			}
		case r.uses[p] == 1 && usesFact(p) && len(facts)+len(conclusions)+len(open) < most:
			open = append(open, premises(p)...)
		default:
			conclusions = append(conclusions, p)
		}
	}
	return facts, conclusions
}

// usesFact reports whether a conclusion has at least one fact as a premise.
func usesFact(c *incompatibility) bool {
	return slices.ContainsFunc(premises(c), func(p *incompatibility) bool { return p.cause.kind != derived })
}

// writeSteps writes the steps of a conclusion after the steps that it depends on.
func (r *reporter) writeSteps(proof *incompatibility) {
	type frame struct {
		c                  *incompatibility
		facts, conclusions []*incompatibility
		next               int
	}
	push := func(path []frame, c *incompatibility) []frame {
		facts, conclusions := r.gather(c)
		return append(path, frame{c: c, facts: facts, conclusions: conclusions})
	}
	path := push(nil, proof)
	for len(path) > 0 {
		f := &path[len(path)-1]
		if f.next < len(f.conclusions) {
			c := f.conclusions[f.next]
			f.next++
			if r.numbers[c] == 0 {
				path = push(path, c)
			}
			continue
		}
		r.writeStep(f.c, f.facts, f.conclusions)
		path = path[:len(path)-1]
	}
}

func (r *reporter) writeStep(c *incompatibility, facts, conclusions []*incompatibility) {
	var reasons []string
	for _, p := range conclusions {
		at := r.numbers[p]
		r.refers[at] = true
		reasons = append(reasons, fmt.Sprintf("%s (%d)", r.conclusion(p), at))
	}
	for _, chain := range r.chains(facts) {
		if text := strings.Join(chain.parts, ", which "); len(text) <= lineLength {
			reasons = append(reasons, text)
			continue
		}
		for i, part := range chain.parts {
			if i > 0 {
				part = "which " + part
			}
			reasons = append(reasons, part)
		}
	}
	r.steps = append(r.steps, step{r.conclusion(c), reasons})
	r.numbers[c] = len(r.steps)
}

// furtherText returns the text for independent conflicts.
func furtherText(conflicts [][]dependency.Root) string {
	texts := textsOf(conflicts, func(core []dependency.Root) string {
		names := textsOf(core, func(r dependency.Root) string { return r.Package })
		if len(names) == 1 {
			return names[0] + " cannot be installed at all"
		}
		return "between " + joinList(fewItems(names), "and")
	})
	return wording.Count(len(conflicts), "further conflict") + ": " + strings.Join(texts, "; ")
}
