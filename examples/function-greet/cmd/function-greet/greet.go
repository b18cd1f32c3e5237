package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// ttl is for how long an answer may be used again.
const ttl = time.Minute

// greet composes a Greeting for the name in the composite resource, and copies the
// message of the Greeting to the composite resource. Desired resources of other functions
// are kept.
func greet(req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
	out := &fnv1.RunFunctionResponse{
		Meta:    &fnv1.ResponseMeta{Tag: req.GetMeta().GetTag(), Ttl: durationpb.New(ttl)},
		Desired: &fnv1.State{}, Context: req.GetContext(),
	}
	if d := req.GetDesired(); d != nil {
		out.Desired = proto.CloneOf(d)
	}
	if err := compose(req, out.Desired); err != nil {
		out.Results = append(out.Results, &fnv1.Result{Severity: fnv1.Severity_SEVERITY_FATAL, Message: err.Error()})
	}
	return out
}

func compose(req *fnv1.RunFunctionRequest, desired *fnv1.State) error {
	in, err := readInput(req.GetInput())
	if err != nil {
		return err
	}
	composite := req.GetObserved().GetComposite().GetResource().AsMap()
	name, ok := at(composite, in.nameFrom).(string)
	if !ok || name == "" {
		return fmt.Errorf("the composite resource has no text at %s", in.nameFrom)
	}
	spec := map[string]any{"name": name}
	if language, ok := at(composite, in.languageFrom).(string); ok && language != "" {
		spec["language"] = language
	}
	greeting, err := structpb.NewStruct(map[string]any{
		"apiVersion": "hello.xpkg.dev/v1alpha1", "kind": "Greeting", "spec": spec,
	})
	if err != nil {
		return err
	}
	observed := req.GetObserved().GetResources()[in.resource].GetResource().AsMap()
	if desired.Resources == nil {
		desired.Resources = map[string]*fnv1.Resource{}
	}
	desired.Resources[in.resource] = &fnv1.Resource{Resource: greeting, Ready: ready(observed)}
	message, ok := at(observed, "status.message").(string)
	if !ok || in.messageTo == "" {
		return nil
	}
	return setMessage(desired, in.messageTo, message)
}

// input is the input of the function in the composition.
type input struct{ resource, nameFrom, languageFrom, messageTo string }

func readInput(s *structpb.Struct) (input, error) {
	all := s.AsMap()
	text := func(key string) string {
		value, _ := all[key].(string)
		return value
	}
	in := input{text("resource"), text("nameFrom"), text("languageFrom"), text("messageTo")}
	if in.resource == "" || in.nameFrom == "" {
		return in, errors.New("the input must set resource and nameFrom")
	}
	return in, nil
}

// ready returns the readiness of a Greeting from its Ready condition.
func ready(observed map[string]any) fnv1.Ready {
	conditions, _ := at(observed, "status.conditions").([]any)
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Ready" && c["status"] == "True" {
			return fnv1.Ready_READY_TRUE
		}
	}
	return fnv1.Ready_READY_FALSE
}

// setMessage sets the message of the composite resource.
func setMessage(desired *fnv1.State, path, message string) error {
	composite := desired.GetComposite().GetResource().AsMap()
	if composite == nil {
		composite = map[string]any{}
	}
	steps := strings.Split(path, ".")
	within := composite
	for _, step := range steps[:len(steps)-1] {
		next, ok := within[step].(map[string]any)
		if !ok {
			next = map[string]any{}
			within[step] = next
		}
		within = next
	}
	within[steps[len(steps)-1]] = message
	told, err := structpb.NewStruct(composite)
	if err != nil {
		return err
	}
	if desired.Composite == nil {
		desired.Composite = &fnv1.Resource{}
	}
	desired.Composite.Resource = told
	return nil
}

// at returns the value at a path such as spec.name, or nil.
func at(object map[string]any, path string) any {
	var here any = object
	for step := range strings.SplitSeq(path, ".") {
		within, ok := here.(map[string]any)
		if !ok {
			return nil
		}
		here = within[step]
	}
	return here
}
