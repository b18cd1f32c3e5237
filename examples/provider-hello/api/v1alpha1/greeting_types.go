package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// A Greeting is a managed resource: the provider writes the greeting into its status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories={crossplane,managed,hello}
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="MESSAGE",type="string",JSONPath=".status.message"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type Greeting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GreetingSpec   `json:"spec"`
	Status GreetingStatus `json:"status,omitempty"`
}

// GreetingSpec is the desired state of a Greeting.
type GreetingSpec struct {
	// Name of the one who is greeted.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Language of the greeting.
	// +optional
	// +kubebuilder:default=en
	// +kubebuilder:validation:Enum=de;en;es;fr
	Language string `json:"language,omitempty"`

	// ProviderConfigRef names the ProviderConfig that is used.
	// +optional
	// +kubebuilder:default={"name": "default"}
	ProviderConfigRef *ProviderConfigReference `json:"providerConfigRef,omitempty"`
}

// ProviderConfigReference names a ProviderConfig.
type ProviderConfigReference struct {
	// Name of the ProviderConfig.
	Name string `json:"name"`
}

// GreetingStatus is the observed state of a Greeting.
type GreetingStatus struct {
	// Message is the greeting.
	// +optional
	Message string `json:"message,omitempty"`

	// Conditions of the greeting. Ready is True once the message is set.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GreetingList is a list of Greetings.
//
// +kubebuilder:object:root=true
type GreetingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Greeting `json:"items"`
}
