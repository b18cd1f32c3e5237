// Package protocol implements the messages of the function protocol of Crossplane, version v1: RunFunctionRequest and
// RunFunctionResponse. Version v1beta1 has the same encoding.
//
// The messages are plain structs, which are converted through the descriptor in this package. Generated code would
// register its types at the start of every command.
package protocol

import "time"

// Request is a RunFunctionRequest. A nil map of a Struct is an absent field.
type Request struct {
	Meta     *RequestMeta `json:"meta,omitempty"`
	Observed *State       `json:"observed,omitempty"`
	Desired  *State       `json:"desired,omitempty"`
	// Input is the input of the step in its composition.
	Input   map[string]any `json:"input,omitzero"`
	Context map[string]any `json:"context,omitzero"`
	// ExtraResources are the resources that requirements in the former field of a response select.
	ExtraResources map[string]Resources `json:"extraResources,omitempty"`
	// RequiredResources are the resources that requirements select. A name without items is a requirement that no resource
	// meets.
	RequiredResources map[string]Resources   `json:"requiredResources,omitempty"`
	Credentials       map[string]Credentials `json:"credentials,omitempty"`
	// RequiredSchemas are the schemas that requirements select. A name without a schema is a requirement that no kind
	// meets.
	RequiredSchemas map[string]Schema `json:"requiredSchemas,omitempty"`
}

// RequestMeta is the metadata of a request.
type RequestMeta struct {
	// Tag identifies the content of the request. The response has the same tag.
	Tag string `json:"tag,omitempty"`
	// Capabilities are the features of the caller, so that a function can avoid those that the caller ignores.
	Capabilities []Capability `json:"capabilities,omitempty"`
}

// Capability is a feature of the protocol that a caller supports.
type Capability int32

// Capabilities returns all capabilities, which this package supports: that capabilities are sent, and then required
// resources, credentials, conditions and required schemas.
func Capabilities() []Capability { return []Capability{1, 2, 3, 4, 5} }

// Schema is the OpenAPI schema, version 3, of a kind.
type Schema struct {
	OpenAPIV3 map[string]any `json:"openapiV3,omitzero"`
}

// Credentials are the data of a secret.
type Credentials struct {
	CredentialData CredentialData `json:"credentialData"`
}

// CredentialData is the data of a secret, by key.
type CredentialData struct {
	Data map[string][]byte `json:"data,omitempty"`
}

// Resources are resources of a requirement.
type Resources struct {
	Items []Resource `json:"items,omitempty"`
}

// Response is a RunFunctionResponse.
type Response struct {
	Meta         *ResponseMeta  `json:"meta,omitempty"`
	Desired      *State         `json:"desired,omitempty"`
	Results      []Result       `json:"results,omitempty"`
	Context      map[string]any `json:"context,omitzero"`
	Requirements *Requirements  `json:"requirements,omitempty"`
	Conditions   []Condition    `json:"conditions,omitempty"`
}

// ResponseMeta is the metadata of a response.
type ResponseMeta struct {
	Tag string `json:"tag,omitempty"`
	// TTL is the time for which the response may be used again, in the JSON form of a Duration, such as "60s".
	TTL string `json:"ttl,omitempty"`
}

// Lifetime returns the time for which the response may be used again, or 0.
func (m *ResponseMeta) Lifetime() time.Duration {
	if m == nil {
		return 0
	}
	d, err := time.ParseDuration(m.TTL)
	if err != nil {
		return 0
	}
	return d
}

// State is the state of a composite resource and of its composed resources, by their names in the composition.
type State struct {
	Composite *Resource           `json:"composite,omitempty"`
	Resources map[string]Resource `json:"resources,omitempty"`
}

// Resource is a resource with its readiness.
type Resource struct {
	Resource          map[string]any    `json:"resource,omitzero"`
	ConnectionDetails map[string][]byte `json:"connectionDetails,omitempty"`
	Ready             Ready             `json:"ready,omitempty"`
}

// Ready is the readiness of a resource.
type Ready int32

// Values of Ready.
const (
	ReadyUnspecified Ready = iota
	ReadyTrue
	ReadyFalse
)

// Result is a message of a function for users.
type Result struct {
	Severity Severity `json:"severity,omitempty"`
	Message  string   `json:"message,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Target   Target   `json:"target,omitempty"`
}

// Severity is the severity of a result. A value that this package does not know is kept.
type Severity int32

// Values of Severity.
const (
	SeverityUnspecified Severity = iota
	SeverityFatal
	SeverityWarning
	SeverityNormal
)

// String returns the name of the severity in the protocol.
func (s Severity) String() string {
	switch s {
	case SeverityFatal:
		return "SEVERITY_FATAL"
	case SeverityWarning:
		return "SEVERITY_WARNING"
	case SeverityNormal:
		return "SEVERITY_NORMAL"
	}
	return "SEVERITY_UNSPECIFIED"
}

// Target is the object of a result or of a condition: the composite resource, or also its claim.
type Target int32

// Values of Target.
const (
	TargetUnspecified Target = iota
	TargetComposite
	TargetCompositeAndClaim
)

// Condition is a condition of the composite resource.
type Condition struct {
	Type    string          `json:"type,omitempty"`
	Status  ConditionStatus `json:"status,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Message string          `json:"message,omitempty"`
	Target  Target          `json:"target,omitempty"`
}

// ConditionStatus is the status of a condition.
type ConditionStatus int32

// Values of ConditionStatus.
const (
	ConditionUnspecified ConditionStatus = iota
	ConditionUnknown
	ConditionTrue
	ConditionFalse
)

// String returns the status as in the conditions of Kubernetes.
func (s ConditionStatus) String() string {
	switch s {
	case ConditionTrue:
		return "True"
	case ConditionFalse:
		return "False"
	}
	return "Unknown"
}

// Requirements select resources and schemas that a function requires, by names that the function chooses. A function is
// called again with them until its requirements do not change.
type Requirements struct {
	// ExtraResources is the former field for Resources.
	ExtraResources map[string]Selector `json:"extraResources,omitempty"`
	Resources      map[string]Selector `json:"resources,omitempty"`
	// Schemas selects the schemas of kinds.
	Schemas map[string]SchemaSelector `json:"schemas,omitempty"`
}

// SchemaSelector selects the schema of a kind.
type SchemaSelector struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
}

// Selector selects a resource by its name, or resources by their labels.
type Selector struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	MatchName  string `json:"matchName,omitempty"`
	// MatchLabels selects all resources of the kind if it has no labels.
	MatchLabels *MatchLabels `json:"matchLabels,omitempty"`
}

// MatchLabels are labels that a resource must have.
type MatchLabels struct {
	Labels map[string]string `json:"labels,omitempty"`
}
