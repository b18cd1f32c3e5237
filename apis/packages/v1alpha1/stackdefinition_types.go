package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A StackDefinition is the record of a package whose controller renders templates for the objects of a kind.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories=crossplane
type StackDefinition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   StackDefinitionSpec   `json:"spec,omitempty"`
	Status StackDefinitionStatus `json:"status,omitempty"`
}

// StackDefinitionList is a list of StackDefinitions.
//
// +kubebuilder:object:root=true
type StackDefinitionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []StackDefinition `json:"items"`
}

// StackDefinitionSpec is the description of a package with templates.
type StackDefinitionSpec struct {
	PackageSpec `json:",inline"`

	// Behavior describes the templates.
	// +optional
	Behavior Behavior `json:"behavior,omitempty"`
}

// StackDefinitionStatus is the observed state of a StackDefinition.
type StackDefinitionStatus struct{}

// Behavior describes how objects of a kind are rendered.
type Behavior struct {
	// CRD is the kind whose objects are rendered.
	// +optional
	CRD BehaviorCRD `json:"crd,omitempty"`
	// Engine renders the templates.
	// +optional
	Engine BehaviorEngine `json:"engine,omitempty"`
	// Source is the location of the templates.
	// +optional
	Source BehaviorSource `json:"source,omitempty"`
}

// BehaviorCRD is a kind of resource.
type BehaviorCRD struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// BehaviorEngine is a template engine.
type BehaviorEngine struct {
	// ControllerImage runs the engine.
	// +optional
	ControllerImage string `json:"controllerImage,omitempty"`
	// Type is the name of the engine, such as helm3 or kustomize.
	Type string `json:"type"`
	// Kustomize configures the engine kustomize.
	// +optional
	Kustomize *KustomizeEngine `json:"kustomize,omitempty"`
}

// KustomizeEngine configures kustomize.
type KustomizeEngine struct {
	// Overlays are patches whose values come from the object.
	// +optional
	Overlays []KustomizeOverlay `json:"overlays,omitempty"`
	// Kustomization is a kustomization file.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Kustomization *runtime.RawExtension `json:"kustomization,omitempty"`
}

// KustomizeOverlay is a patch of an object.
type KustomizeOverlay struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	// Bindings are the values of the patch.
	Bindings []FieldBinding `json:"bindings"`
}

// FieldBinding copies a field.
type FieldBinding struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// BehaviorSource is the location of templates.
type BehaviorSource struct {
	// Image with the templates; the image of the package if it is empty.
	// +optional
	Image string `json:"image,omitempty"`
	// Path of the folder in the image.
	Path string `json:"path"`
}
