package plan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A message names at most ten objects and three rules, and a judgement at most MaxJudgedNames objects. Each object
// counts once, by the worst of its rules.
func TestJudgementsAreBounded(t *testing.T) {
	j := Judgement{CRD: "proxies.example.org", Kind: "Proxy"}
	rules := []JudgedRule{
		{Rule: "FieldRemoved", Path: ".a", Text: "is removed"}, {Rule: "FieldRemoved", Path: ".b", Text: "is removed"},
		{Rule: "FieldRemoved", Path: ".c", Text: "is removed"}, {Rule: "Rejected", Text: "is rejected"},
		{Rule: "RuleAdded", Path: ".d", Text: "is accepted", Accepted: true},
		{Rule: "EnumAdded", Path: ".e", Text: "is kept", Tolerated: true},
	}
	for i := range 3000 {
		j.Add(fmt.Sprintf("n-%d", i), slices.Concat(rules[i%len(rules):][:1], rules[:i/1500]))
	}
	j.Add("whole", nil)
	j.Sort()
	names := 0
	for _, f := range j.Findings {
		names += len(f.Objects)
	}
	if names != MaxJudgedNames || j.Objects != 3001 || j.Broken+j.Accepted+j.Tolerated != 3000 || len(j.Findings) != len(rules) {
		t.Errorf("%d names; %d of %d objects break, %d accepted, %d tolerated, by %d rules", names, j.Broken, j.Objects, j.Accepted,
			j.Tolerated, len(j.Findings))
	}
	r, refused := j.Refusal(Ref{Kind: DefinitionKind, Name: j.CRD})
	const want = "CustomResourceDefinition proxies.example.org breaks 2500 of 3001 Proxies: n-0, n-6, n-12, n-18, n-24, n-30, n-36, n-42, n-48, n-54 and 1740 more: .a is removed; " +
		"500 objects: the object is rejected; 500 objects: .b is removed; and 1 more"
	if !refused || r.Reason != want {
		t.Errorf("refused: %t, %s", refused, r.Reason)
	}
	notes := []string{
		"Proxy: 250 of 3001 objects break, which is accepted: n-4, n-10, n-16, n-22, n-28, n-34, n-40, n-46, n-52, n-58 and 490 more: .d is accepted",
		"Proxy: 250 of 3001 objects keep values that new objects may not have: n-5, n-11, n-17, n-23, n-29, n-35, n-41, n-47, n-53, n-59 and 490 more: .e is kept",
	}
	if diff := cmp.Diff(notes, j.Notes()); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}
