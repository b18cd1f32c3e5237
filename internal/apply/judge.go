package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/xpkg-dev/xpkg/internal/crdvalidation"
	"github.com/xpkg-dev/xpkg/internal/judgement"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/crddiff"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// judgesAtOnce is the maximum number of kinds whose custom resources are judged concurrently. Each needs its validators
// and a page of custom resources in memory.
const judgesAtOnce = 4

// maxAcceptsInText limits the consents in the command of a refusal.
const maxAcceptsInText = 20

// Breaks are what a user accepts that a plan breaks, as items of plan.Judgement.Unaccepted, and the command with which
// a user accepts more, without the flags.
type Breaks struct {
	Accepted []string
	Command  string
}

// judge judges the custom resources of a CRD by the CRDs that replace it through an object.
func (f *preflight) judge(ctx context.Context, ch *plan.Change, live, future []byte) error {
	select {
	case f.judging <- struct{}{}:
		defer func() { <-f.judging }()
	case <-ctx.Done():
		return ctx.Err()
	}
	j, err := judgement.New(live, future)
	if err != nil {
		return ErrContent.New(err, "compare %s %s with the CustomResourceDefinition in the cluster", ch.Ref.Kind, ch.Ref.Name)
	}
	if j == nil {
		return nil
	}
	var d definition
	if err := json.Unmarshal(live, &d); err != nil {
		return err
	}
	crd := d.Spec.Names.Plural + "." + d.Spec.Group
	out, err := f.cluster.judged(ctx, d, j, func(rule string) bool {
		return slices.Contains(f.breaks.Accepted, crd+"/"+rule)
	})
	if err != nil {
		return err
	}
	out.CRD, out.Kind, out.Version = crd, d.Spec.Names.Kind, j.Version()
	if out.Objects == 0 && out.Unknown == "" {
		return nil
	}
	out.Unaffected = unaffected(j.Changes(), out.Findings)
	out.Sort()
	refusal, refused := out.Refusal(ch.Ref)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.judgements = append(f.judgements, out)
	if refused {
		f.refusals = append(f.refusals, refusal)
	}
	return nil
}

// judgeComposites judges the custom resources of the CRDs that Crossplane makes of an XRD, if it makes others of the
// new one.
func (f *preflight) judgeComposites(ctx context.Context, ch *plan.Change, future []byte) error {
	live, exists, err := f.cluster.object(ctx, ch.Ref)
	if err != nil || !exists {
		return err
	}
	was, err := crdvalidation.CompositeCRDs(live)
	if err != nil {
		return nil //nolint:nilerr // Crossplane makes no CRD of it.
	}
	is, err := crdvalidation.CompositeCRDs(future)
	if err != nil {
		return ErrContent.New(err, "read %s %s", ch.Ref.Kind, ch.Ref.Name)
	}
	for i := range min(len(was), len(is)) {
		if j, err := judgement.New(was[i], is[i]); err == nil && j == nil {
			continue
		}
		d, err := parseDefinition(ch.Ref, is[i])
		if err != nil {
			return err
		}
		crd, exists, err := f.cluster.object(ctx, plan.DefinitionRef(d.Spec.Names.Plural+"."+d.Spec.Group))
		if err != nil {
			return err
		}
		if !exists {
			continue
		}
		if err := f.judge(ctx, ch, crd, is[i]); err != nil {
			return err
		}
	}
	return nil
}

// judged judges all custom resources of a CRD. Accepts reports whether a user accepts that a rule breaks some.
func (c *Cluster) judged(
	ctx context.Context, d definition, j *judgement.Judge, accepts func(rule string) bool,
) (out plan.Judgement, err error) {
	for next, tries := "", 1; ; {
		params := map[string]string{"limit": pageSize}
		if next != "" {
			params["continue"] = next
		}
		raw, err := c.get(ctx, runtime.ContentTypeJSON, params, "/apis", d.Spec.Group, j.Version(), d.Spec.Names.Plural)
		switch {
		case apierrors.IsResourceExpired(err) && tries < listTries:
			out, next = plan.Judgement{}, ""
			tries++
			continue
		case apierrors.IsForbidden(err):
			// The API server carries out the change; a user who may read the objects sees what it breaks.
			return plan.Judgement{Unknown: "xpkg is not allowed to list them"}, nil
		case apierrors.IsNotFound(err) && !d.isEstablished():
			return plan.Judgement{}, nil
		case apierrors.IsNotFound(err):
			return unread(kindNotServed, accepts), nil
		case isInternal(err):
			return unread(wording.ClipCharacters(err.Error(), maxReasonInText), accepts), nil
		case err != nil:
			return out, fmt.Errorf("list the custom resources of %s.%s: %w", d.Spec.Names.Plural, d.Spec.Group, err)
		}
		next, err = eachItem(raw, func(item []byte) error { return judgeItem(ctx, j, item, accepts, &out) })
		if err != nil {
			return out, fmt.Errorf("judge the custom resources of %s.%s: %w", d.Spec.Names.Plural, d.Spec.Group, err)
		}
		if next == "" {
			return out, nil
		}
	}
}

// maxReasonInText is the maximum number of characters of the reason why custom resources cannot be read.
const maxReasonInText = 400

// isInternal reports whether the API server failed with a request, as it does if a conversion webhook fails.
func isInternal(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusInternalServerError
}

// unread returns the judgement of custom resources that cannot be read.
func unread(why string, accepts func(rule string) bool) plan.Judgement {
	return plan.Judgement{Unknown: why, Findings: []plan.JudgedRule{{
		Rule: plan.Unread, Text: "cannot be read", Accepted: accepts(plan.Unread),
	}}}
}

// judgeItem adds a custom resource to a judgement.
func judgeItem(
	ctx context.Context, j *judgement.Judge, item []byte, accepts func(rule string) bool, out *plan.Judgement,
) error {
	var p partial
	if err := json.Unmarshal(item, &p); err != nil {
		return err
	}
	name := p.name()
	found, err := j.Object(ctx, item)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var broken []plan.JudgedRule
	for _, f := range found {
		broken = append(broken, plan.JudgedRule{
			Rule: f.Rule, Path: f.Path, Text: f.Text, Tolerated: f.Tolerated, Accepted: !f.Tolerated && accepts(f.Rule),
		})
	}
	out.Add(name, broken)
	return nil
}

// eachItem calls a function with the items of a list, one at a time in the same memory, and returns the token with
// which the list continues.
func eachItem(list []byte, do func(item []byte) error) (next string, err error) {
	d := json.NewDecoder(bytes.NewReader(list))
	if _, err := d.Token(); err != nil {
		return "", err
	}
	var skipped json.RawMessage
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return "", err
		}
		switch key {
		case "metadata":
			var metadata struct {
				Continue string `json:"continue"`
			}
			if err := d.Decode(&metadata); err != nil {
				return "", err
			}
			next = metadata.Continue
		case "items":
			if err := eachElement(d, do); err != nil {
				return "", err
			}
		default:
			if err := d.Decode(&skipped); err != nil {
				return "", err
			}
		}
	}
	return next, nil
}

// eachElement calls a function with the elements of a JSON array, or with none if the next value is null.
func eachElement(d *json.Decoder, do func([]byte) error) error {
	start, err := d.Token()
	if err != nil || start == nil {
		return err
	}
	var element json.RawMessage
	for d.More() {
		if err := d.Decode(&element); err != nil {
			return err
		}
		if err := do(element); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// unaffected returns the breaking changes that no finding is attributed to, as clauses.
func unaffected(changes []crddiff.Change, found []plan.JudgedRule) []string {
	var out []string
	for _, c := range changes {
		isFound := slices.ContainsFunc(found, func(f plan.JudgedRule) bool {
			return f.Rule == string(c.Type) && strings.HasPrefix(f.Path, c.Path)
		})
		if c.Class != crddiff.Breaking || isFound {
			continue
		}
		text := c.Path + " was removed"
		if c.Type != crddiff.FieldRemoved {
			reason, _, _ := strings.Cut(c.Reason, ";")
			text = strings.TrimSpace(c.Path+": "+reason) + crddiff.Values(c.From, c.To)
			text = strings.TrimPrefix(text, ": ")
		}
		out = append(out, wording.ClipCharacters(text, maxChangeInText))
	}
	return out
}

// maxChangeInText is the maximum number of characters of a change in a judgement.
const maxChangeInText = 160

// explainBreaks adds to the refusals of broken objects the command that accepts all of them.
func (f *preflight) explainBreaks() {
	var flags []string
	for i := range f.judgements {
		for _, item := range f.judgements[i].Unaccepted() {
			flags = append(flags, "--accept "+item)
		}
	}
	if len(flags) == 0 {
		return
	}
	fix := "Change or delete the objects, or keep the installed version."
	if f.breaks.Command != "" {
		accept := f.breaks.Command + " " + strings.Join(flags[:min(len(flags), maxAcceptsInText)], " ")
		fix += " To accept that they break, run `" + accept + "`"
		if rest := len(flags) - maxAcceptsInText; rest > 0 {
			fix += fmt.Sprintf(" with %d more flags --accept CRD/RULE, which the plan of the update names", rest)
		}
		fix += "."
	}
	for i := range f.refusals {
		if r := &f.refusals[i]; r.Cause == plan.BreaksObjects {
			r.Fix = fix
		}
	}
}
