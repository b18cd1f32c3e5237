package protocol

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"
)

// TestMessagesHaveTheEncodingOfTheProtocol compares an encoding with one that is written field by field.
func TestMessagesHaveTheEncodingOfTheProtocol(t *testing.T) {
	got, err := MarshalRequest(&Request{
		Meta: &RequestMeta{Tag: "t", Capabilities: []Capability{1, 5}},
		Desired: &State{Resources: map[string]Resource{"boat": {Ready: ReadyTrue, Resource: map[string]any{
			"kind": "Boat",
		}}}},
		RequiredResources: map[string]Resources{"none": {}}, RequiredSchemas: map[string]Schema{"none": {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	text := func(number protowire.Number, s []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), s)
	}
	kind := text(1, append(text(1, []byte("kind")), text(2, text(3, []byte("Boat")))...))
	boat := append(text(1, kind), protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), 1)...)
	want := text(1, append(text(1, []byte("t")), text(2, []byte{1, 5})...))
	want = append(want, text(3, text(2, append(text(1, []byte("boat")), text(2, boat)...)))...)
	want = append(want, text(8, append(text(1, []byte("none")), text(2, nil)...))...)
	want = append(want, text(9, append(text(1, []byte("none")), text(2, nil)...))...)
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%x, want\n%x", got, want)
	}
}

func TestResponsesKeepEveryField(t *testing.T) {
	want := &Response{
		Meta: &ResponseMeta{Tag: "t", TTL: "60s"},
		Desired: &State{Composite: &Resource{
			Resource:          map[string]any{"status": map[string]any{"n": 3.0, "l": []any{true, nil, "x"}}},
			ConnectionDetails: map[string][]byte{"k": {0, 1}},
		}},
		Results: []Result{{Severity: SeverityWarning, Message: "m", Reason: "R", Target: TargetCompositeAndClaim}, {
			Severity: 9,
		}},
		Context:    map[string]any{},
		Conditions: []Condition{{Type: "T", Status: ConditionFalse, Reason: "R", Message: "m", Target: TargetComposite}},
		Requirements: &Requirements{
			Schemas:   map[string]SchemaSelector{"s": {APIVersion: "v1", Kind: "Secret"}},
			Resources: map[string]Selector{"a": {APIVersion: "v1", Kind: "Secret", Namespace: "n", MatchName: "x"}},
			ExtraResources: map[string]Selector{
				"b":   {APIVersion: "v1", Kind: "Secret", MatchLabels: &MatchLabels{Labels: map[string]string{"k": "v"}}},
				"all": {Kind: "Secret", MatchLabels: &MatchLabels{}},
			},
		},
	}
	raw, err := MarshalResponse(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := UnmarshalResponse(raw)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if got.Meta.Lifetime().String() != "1m0s" || (*ResponseMeta)(nil).Lifetime() != 0 {
		t.Error("the lifetime is not read")
	}
}

func TestRequestsKeepSchemas(t *testing.T) {
	want := map[string]Schema{
		"s": {OpenAPIV3: map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{
			"minimum": 1.0,
		}}}},
		"none": {},
	}
	raw, err := MarshalRequest(&Request{RequiredSchemas: want, Meta: &RequestMeta{Capabilities: Capabilities()}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := UnmarshalRequest(raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.RequiredSchemas) + cmp.Diff(Capabilities(), got.Meta.Capabilities); diff != "" {
		t.Error(diff)
	}
}

func TestEveryJSONObjectIsAnInput(t *testing.T) {
	value := rapid.Deferred(func() *rapid.Generator[any] { return jsonValue(3) })
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.MapOfN(rapid.String(), value, 0, 4).Draw(t, "input")
		raw, err := MarshalRequest(&Request{Input: want})
		if err != nil {
			t.Fatal(err)
		}
		got, err := UnmarshalRequest(raw)
		if diff := cmp.Diff(want, got.Input); err != nil || diff != "" {
			t.Error(err, diff)
		}
	})
}

func jsonValue(depth int) *rapid.Generator[any] {
	leaves := []*rapid.Generator[any]{
		rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.Int32(), func(n int32) any { return float64(n) }), rapid.Just[any](nil),
	}
	if depth == 0 {
		return rapid.OneOf(leaves...)
	}
	below := jsonValue(depth - 1)
	return rapid.OneOf(append(leaves,
		rapid.Map(rapid.SliceOfN(below, 0, 3), func(l []any) any { return append([]any{}, l...) }),
		rapid.Map(rapid.MapOfN(rapid.String(), below, 0, 3), func(m map[string]any) any { return m }))...)
}

func TestHostileResponsesAreRefused(t *testing.T) {
	var deep any = "x"
	for range 5000 {
		deep = []any{deep}
	}
	field := func(number protowire.Number, s []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), s)
	}
	number := field(1, append(field(1, []byte("n")), field(
		2, protowire.AppendFixed64(protowire.AppendTag(nil, 2, protowire.Fixed64Type), math.Float64bits(math.Inf(1))),
	)...))
	var nested []byte
	for range 5000 {
		nested = field(2, field(6, field(1, nested)))
	}
	twoKeys := protowire.AppendVarint(protowire.AppendTag(field(1, []byte("key")), 1, protowire.VarintType), 1)
	many := &Response{Desired: &State{Resources: map[string]Resource{}}}
	for i := range maxResources + 1 {
		many.Desired.Resources[string(rune(i+1000))] = Resource{}
	}
	tooMany, err := MarshalResponse(many)
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string][]byte{
		"no message": {0xff}, "infinity": field(4, number), "too large": make([]byte, MaxMessage+1),
		"invalid UTF-8": field(3, field(2, []byte{0xff})),
		"too deep":      field(4, field(1, append(field(1, []byte("n")), nested...))), "too many resources": tooMany,
		"an entry with keys of two types": field(4, field(1, twoKeys)),
	} {
		if got, err := UnmarshalResponse(raw); err == nil || got != nil {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	if _, err := MarshalRequest(&Request{Input: map[string]any{"deep": deep}}); err == nil {
		t.Error("an input that is too deep is sent")
	}
}

// FuzzResponse reads responses of a hostile function.
func FuzzResponse(f *testing.F) {
	raw, err := MarshalResponse(&Response{
		Desired: &State{Resources: map[string]Resource{"a": {Resource: map[string]any{"kind": "Boat"}}}},
		Context: map[string]any{"k": 1.0},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := UnmarshalResponse(raw)
		if err != nil {
			return
		}
		again, err := MarshalResponse(got)
		if err != nil {
			t.Fatal(err)
		}
		same, err := UnmarshalResponse(again)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(same)
		if !bytes.Equal(a, b) {
			t.Errorf("got %s, want %s", b, a)
		}
	})
}
