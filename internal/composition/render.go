package composition

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/internal/function/protocol"
)

// maxIterations is the number of repeated calls of a function whose requirements change.
const maxIterations = 5

// Functions calls functions by their names.
type Functions interface {
	Call(ctx context.Context, name string, r *protocol.Request) (*protocol.Response, error)
}

// Input is the input of a rendering.
type Input struct {
	// Composite is the composite resource as it is in the cluster.
	Composite   *unstructured.Unstructured
	Composition Composition
	// Observed are the composed resources that exist. Each has the annotation with its name in the composition.
	Observed []*unstructured.Unstructured
	// Resources are the resources that functions can require.
	Resources []*unstructured.Unstructured
	// Schemas returns the schema of a kind that functions can require, or nil if it has none.
	Schemas func(schema.GroupVersionKind) (map[string]any, error)
	// Context is the context of the first step.
	Context map[string]any
	Secrets []Secret
	// Called, if it is not nil, gets the last request and the response of each step.
	Called func(Step, *protocol.Request, *protocol.Response)
}

// Secret has credentials of functions.
type Secret struct {
	SecretRef
	Data map[string][]byte
}

// Output is the result of a rendering.
type Output struct {
	// Composite is the desired status of the composite resource, with its conditions.
	Composite *unstructured.Unstructured
	// Composed are the desired composed resources, ordered by their names in the composition.
	Composed []*unstructured.Unstructured
	// Results are those of all steps that ran. A fatal result is the last one.
	Results []Result
	// Context is the context after the last step, or nil.
	Context map[string]any
}

// Result is a result of a step.
type Result struct {
	Step string
	protocol.Result
}

// Render runs the pipeline. It fails with CompositionInvalid for an invalid input, with FatalResult,
// RequirementsUnstable and DesiredResourceInvalid because of a function, and with the errors of calls.
func Render(ctx context.Context, f Functions, in Input) (Output, error) {
	observed, err := observedState(in)
	if err != nil {
		return Output{}, err
	}
	p := &pipeline{functions: f, input: in, observed: observed, desired: &protocol.State{}, context: map[string]any{}}
	maps.Copy(p.context, in.Context)
	for _, s := range in.Composition.Spec.Pipeline {
		if err := p.step(ctx, s); err != nil {
			return Output{Results: p.results}, err
		}
	}
	composed, err := p.composed()
	if err != nil {
		return Output{Results: p.results}, err
	}
	return Output{Composite: p.composite(), Composed: composed, Results: p.results, Context: p.context}, nil
}

// pipeline is the state of a rendering.
type pipeline struct {
	functions  Functions
	input      Input
	observed   *protocol.State
	desired    *protocol.State
	context    map[string]any
	results    []Result
	conditions []protocol.Condition
}

func observedState(in Input) (*protocol.State, error) {
	out := &protocol.State{
		Composite: &protocol.Resource{Resource: in.Composite.Object}, Resources: map[string]protocol.Resource{},
	}
	for _, o := range in.Observed {
		name := o.GetAnnotations()[nameAnnotation]
		if name == "" {
			return nil, ErrCompositionInvalid.New(
				nil, "the observed resource %s %s has no annotation %s", o.GetKind(), o.GetName(), nameAnnotation,
			).
				WithDo("Set the annotation to the name of the resource in the composition.")
		}
		if _, twice := out.Resources[name]; twice {
			return nil, ErrCompositionInvalid.New(nil, "two observed resources have the name %s in the composition", name)
		}
		out.Resources[name] = protocol.Resource{Resource: o.Object}
	}
	return out, nil
}

// step runs a step, and takes over its response.
func (p *pipeline) step(ctx context.Context, s Step) error {
	req := &protocol.Request{Observed: p.observed, Desired: p.desired, Context: p.context, Input: s.Input}
	if err := p.addCredentials(req, s); err != nil {
		return err
	}
	var required protocol.Requirements
	for _, r := range s.Requirements.RequiredResources {
		required.Resources = with(required.Resources, r.Name, r.selector())
	}
	for _, r := range s.Requirements.RequiredSchemas {
		required.Schemas = with(required.Schemas, r.Name, r.SchemaSelector)
	}
	if err := p.meet(req, required); err != nil {
		return err
	}
	tag, err := tagOf(req)
	if err != nil {
		return ErrCompositionInvalid.New(err, "cannot encode the request of the step %s", s.Step)
	}
	req.Meta = &protocol.RequestMeta{Tag: tag, Capabilities: protocol.Capabilities()}
	res, err := p.call(ctx, s, req)
	if err != nil {
		return err
	}
	if p.input.Called != nil {
		p.input.Called(s, req, res)
	}
	p.desired, p.context = res.Desired, res.Context
	p.conditions = append(p.conditions, res.Conditions...)
	for _, r := range res.Results {
		p.results = append(p.results, Result{s.Step, r})
		if r.Severity == protocol.SeverityFatal {
			return ErrFatalResult.New(errors.New(r.Message), "the function %s failed in the step %s", s.FunctionRef.Name, s.Step)
		}
	}
	return nil
}

func (p *pipeline) addCredentials(req *protocol.Request, s Step) error {
	for _, c := range s.Credentials {
		if c.Source != "Secret" || c.SecretRef == nil {
			continue
		}
		data, ok := p.secret(*c.SecretRef)
		if !ok {
			return ErrCompositionInvalid.New(
				nil, "the step %s requires the secret %s in the namespace %s, which is not given", s.Step, c.SecretRef.Name,
				c.SecretRef.Namespace,
			).
				WithDo("Name a file with the secret with --function-credentials.")
		}
		if req.Credentials == nil {
			req.Credentials = map[string]protocol.Credentials{}
		}
		req.Credentials[c.Name] = protocol.Credentials{CredentialData: protocol.CredentialData{Data: data}}
	}
	return nil
}

func (p *pipeline) secret(ref SecretRef) (map[string][]byte, bool) {
	for _, s := range p.input.Secrets {
		if s.SecretRef == ref {
			return s.Data, true
		}
	}
	return nil, false
}

// call calls the function of a step until its requirements do not change.
func (p *pipeline) call(ctx context.Context, s Step, req *protocol.Request) (*protocol.Response, error) {
	resources, schemas := req.RequiredResources, req.RequiredSchemas
	var before protocol.Requirements
	for range maxIterations + 1 {
		res, err := p.functions.Call(ctx, s.FunctionRef.Name, req)
		if err != nil {
			return nil, fmt.Errorf("step %s: %w", s.Step, err)
		}
		var now protocol.Requirements
		if res.Requirements != nil {
			now = *res.Requirements
		}
		if isFatal(res) || reflect.DeepEqual(before, now) {
			return res, nil
		}
		before = now
		req.ExtraResources, req.RequiredResources, req.RequiredSchemas = nil, maps.Clone(resources), maps.Clone(schemas)
		if err := p.meet(req, now); err != nil {
			return nil, err
		}
		req.Context = res.Context
	}
	return nil, ErrRequirements.New(
		nil, "the requirements of the function %s in the step %s still change after %d calls", s.FunctionRef.Name, s.Step,
		maxIterations+1,
	)
}

func isFatal(r *protocol.Response) bool {
	for _, result := range r.Results {
		if result.Severity == protocol.SeverityFatal {
			return true
		}
	}
	return false
}

// tagOf returns a tag that identifies the content of a request.
func tagOf(r *protocol.Request) (string, error) {
	raw, err := protocol.MarshalRequest(r)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}
