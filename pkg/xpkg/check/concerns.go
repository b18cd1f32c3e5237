package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/canonical"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/kinds"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/parallel"
)

// Codes of concerns: properties of valid objects that the users of a package should know before they install it.
var (
	ErrHiddenName = errcode.Code{
		Name: "HiddenName", Class: errcode.Invalid,
		Cause: "A CRD, XRD or MRD has a name that a kind of Kubernetes or Crossplane has. Commands such as `kubectl get NAME` find only one of the two.",
		Fix:   "Choose another name. Users of the package write the plural and the group, as in `kubectl get things.example.org`.",
	}
	ErrFarReaching = errcode.Code{
		Name: "FarReaching", Class: errcode.Invalid,
		Cause: "An object of the package acts beyond the package: a CronOperation that runs more than 12 times in an hour, a step that reads a Secret in a namespace of Kubernetes, or a ManagedResourceActivationPolicy for all kinds.",
		Fix:   "Limit the object to what the package needs. Users of the package review it before they install it.",
	}
	ErrLargeObject = errcode.Code{
		Name: "LargeObject", Class: errcode.Invalid,
		Cause: "An object is near the limit for one object of an API server, or a schema has a default of more than 100 kB, which the API server adds to each custom resource.",
		Fix:   "Move large values out of the object, or split it.",
	}
	ErrNeedlessConversion = errcode.Code{
		Name: "NeedlessConversion", Class: errcode.Invalid,
		Cause: "A CRD, XRD or MRD with one version has a conversion webhook. There is nothing to convert, and the CRD depends on the runtime of the package.",
		Fix:   "Remove spec.conversion until there is a second version.",
	}
)

const (
	// maxRunsPerHour is the number of runs of a CronOperation that are no concern.
	maxRunsPerHour = 12
	// maxDefaultBytes is the size of a default that is no concern.
	maxDefaultBytes = 100_000
)

// Concerns returns the concerns about objects, in their order. Objects that cannot be read have none.
func Concerns(objects []xpkg.Object) []xpkg.Finding {
	checks := make([]objectChecker, len(objects))
	parallel.Do(len(objects), func(i int) {
		c := &checks[i]
		c.checker, c.object, c.lines.Raw = &checker{limits: xpkg.Limits{}.WithDefaults()}, objects[i], objects[i].Raw
		var err error
		if c.text, err = objects[i].JSON(); err != nil {
			return
		}
		if isDefinition(c.object.GVK) {
			var p partial
			_ = json.Unmarshal(c.text, &p)
			c.crd = p.Spec
		}
		c.checkConcerns()
		c.text = nil
	})
	var out []xpkg.Finding
	for _, c := range checks {
		out = append(out, c.findings...)
	}
	for i := range out {
		out[i].Severity = xpkg.Warning
	}
	return out
}

// isDefinition reports whether an object is a CRD, an XRD or an MRD.
func isDefinition(of gvk) bool {
	return of.Group == kinds.GroupCRD ||
		of.Group == kinds.GroupComposition && (of.Kind == kinds.XRD || of.Kind == kinds.MRD)
}

// checkConcerns reports the concerns about an object. The CRDs of a Function are never installed.
func (c *objectChecker) checkConcerns() {
	if c.pkg != nil && c.pkg.Meta.Kind == xpkg.Function {
		return
	}
	if limit := c.limits.ObjectBytes; len(c.text) > limit/3*2 {
		c.finding(ErrLargeObject, "", "the object has %d bytes as JSON; an API server accepts about %d", len(c.text), limit)
	}
	switch {
	case isDefinition(c.object.GVK):
		c.checkDefaults()
		c.checkAmbiguousNames()
		if len(c.crd.Versions) == 1 && c.crd.Conversion.Strategy == "Webhook" {
			c.finding(ErrNeedlessConversion, "spec.conversion", "spec.conversion has a webhook, and there is one version")
		}
	case c.object.GVK.Group == kinds.GroupComposition || c.object.GVK.Group == kinds.GroupOperation:
		c.checkReach()
	}
}

// checkDefaults reports large defaults in schemas.
func (c *objectChecker) checkDefaults() {
	if len(c.text) <= maxDefaultBytes || !bytes.Contains(c.text, []byte(`"default":`)) {
		return
	}
	cursor := canonical.Cursor{Text: c.text}
	var walk func(path string, inside bool)
	walk = func(path string, inside bool) {
		switch cursor.Text[cursor.At] {
		case '{':
			cursor.Fields(func(key string) bool {
				at := path + "." + key
				if inside {
					at = path + "[" + key + "]"
				}
				start := cursor.At
				walk(at, key == "properties" && !inside)
				if cursor.At == start {
					cursor.Skip()
				}
				if size := cursor.At - start; key == "default" && !inside && size > maxDefaultBytes {
					c.finding(ErrLargeObject, at[1:], "%.300s has %d bytes", at[1:], size)
				}
				return true
			})
		case '[':
			i := 0
			cursor.Elements(func() { walk(fmt.Sprintf("%s[%d]", path, i), false); i++ })
		}
	}
	walk("", false)
}

// steps is a pipeline of functions.
type steps struct {
	Pipeline []struct {
		Credentials []struct {
			SecretRef struct {
				Namespace string `json:"namespace"`
				Name      string `json:"name"`
			} `json:"secretRef"`
		} `json:"credentials"`
	} `json:"pipeline"`
}

// checkReach reports what an object of Crossplane does beyond its package.
func (c *objectChecker) checkReach() {
	var object struct {
		Spec struct {
			steps
			Template struct {
				Spec steps `json:"spec"`
			} `json:"operationTemplate"`
			Schedule string   `json:"schedule"`
			Activate []string `json:"activate"`
		} `json:"spec"`
	}
	_ = json.Unmarshal(c.text, &object) // Fields of the wrong type are reported by the check of the schema.
	spec := object.Spec
	if n := runsPerHour(spec.Schedule); c.object.GVK.Kind == kinds.CronOperation && n > maxRunsPerHour {
		c.finding(
			ErrFarReaching, "spec.schedule", "spec.schedule %.60q runs the operation up to %s in an hour", spec.Schedule,
			wording.Count(n, "time"),
		)
	}
	for i, pattern := range spec.Activate {
		if c.object.GVK.Kind == kinds.MRAP && pattern == "*" {
			path := fmt.Sprintf("spec.activate[%d]", i)
			c.finding(ErrFarReaching, path, `%s is "*": it activates the managed resources of every provider`, path)
		}
	}
	c.checkCredentials("spec", spec.steps)
	c.checkCredentials("spec.operationTemplate.spec", spec.Template.Spec)
}

// checkCredentials reports the Secrets in namespaces of Kubernetes that a pipeline reads.
func (c *objectChecker) checkCredentials(path string, of steps) {
	for i, step := range of.Pipeline {
		for j, credentials := range step.Credentials {
			if ref := credentials.SecretRef; strings.HasPrefix(ref.Namespace, "kube-") {
				at := fmt.Sprintf("%s.pipeline[%d].credentials[%d].secretRef", path, i, j)
				c.finding(ErrFarReaching, at+
					".namespace", "%s passes the Secret %.100q in the namespace %.100q to a Function", at, ref.Name, ref.Namespace)
			}
		}
	}
}

// runsPerHour returns how often a schedule of a CronOperation runs in an hour at most; 0 for a schedule that is not
// valid.
func runsPerHour(schedule string) int {
	fields := strings.Fields(schedule)
	if len(fields) > 0 && strings.Contains(fields[0], "TZ=") {
		fields = fields[1:]
	}
	if len(fields) == 2 && fields[0] == "@every" {
		if d, err := time.ParseDuration(fields[1]); err == nil {
			return int(time.Hour / max(d, time.Second))
		}
	}
	if len(fields) != 5 {
		return 0
	}
	minutes := map[int]bool{}
	for part := range strings.SplitSeq(fields[0], ",") {
		from, to, step, ok := minuteRange(part)
		if !ok {
			return 0
		}
		for m := from; m <= to; m += step {
			minutes[m] = true
		}
	}
	return len(minutes)
}

// minuteRange parses a part of the minutes of a schedule, such as "*/5", "10-20" or "7".
func minuteRange(part string) (from, to, step int, ok bool) {
	text, every, stepped := strings.Cut(part, "/")
	step = 1
	if stepped {
		step, _ = strconv.Atoi(every)
	}
	first, last, isRange := strings.Cut(text, "-")
	from, err := strconv.Atoi(first)
	switch {
	case text == "*" || text == "?":
		from, to, err = 0, 59, nil
	case isRange && err == nil:
		to, err = strconv.Atoi(last)
	case stepped:
		to = 59
	default:
		to = from
	}
	return from, to, step, err == nil && step > 0 && from >= 0 && to < 60
}
