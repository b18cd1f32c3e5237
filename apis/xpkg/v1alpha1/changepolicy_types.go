package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ChangePolicyName is the only name of a ChangePolicy.
const ChangePolicyName = "default"

// A ChangePolicy says when transactions may start, which of them need an approval and by how many people, and how long
// their packages are watched before a transaction has succeeded. While it exists, packages are changed by transactions
// only. Without one, any user with the permissions for packages changes them at any time.
//
// The return of packages to their former state after a failure is never delayed.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=changepolicies,categories=crossplane;pkg
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'default'",message="the only name of a ChangePolicy is default"
// +kubebuilder:printcolumn:name="ENFORCED",type="string",JSONPath=".status.conditions[?(@.type=='Enforced')].status"
// +kubebuilder:printcolumn:name="MESSAGE",type="string",JSONPath=".status.conditions[?(@.type=='Enforced')].message"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type ChangePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ChangePolicySpec   `json:"spec"`
	Status ChangePolicyStatus `json:"status,omitempty"`
}

// ChangePolicyList is a list of ChangePolicies.
//
// +kubebuilder:object:root=true
type ChangePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ChangePolicy `json:"items"`
}

// ChangePolicySpec is a policy of changes. An empty one permits all transactions at any time.
type ChangePolicySpec struct {
	// TimeZone of the windows, a name of the IANA time zone database such as Europe/Berlin. Default is UTC. If it does not
	// exist, no transaction starts.
	// +optional
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_+/-]*$`
	TimeZone string `json:"timeZone,omitempty"`

	// Windows are the times at which transactions may start. Without one, they start at any time.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	Windows []ChangeWindow `json:"windows,omitempty"`

	// Freezes are times at which no transaction starts, whatever the windows are.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	Freezes []ChangeFreeze `json:"freezes,omitempty"`

	// Approvals are the changes that people must approve. A change that several of them select needs the largest number of
	// people.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	Approvals []NeededApproval `json:"approvals,omitempty"`

	// Watch is the time for which all packages must stay healthy before a transaction has succeeded. If one of them does
	// not, the transaction returns all packages to their former state, also with onFailure Keep.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('168h')",message="must be between 0s and 168h"
	Watch *metav1.Duration `json:"watch,omitempty"`
}

// ChangeWindow is a repeated time at which transactions may start.
//
// +kubebuilder:validation:XValidation:rule="!has(self.week) || has(self.days) && size(self.days) > 0",message="week needs days"
type ChangeWindow struct {
	// Days are the days of the week on which the window opens. Default is every day.
	// +optional
	// +kubebuilder:validation:MaxItems=7
	// +listType=set
	Days []Weekday `json:"days,omitempty"`

	// Week selects the n-th such day of a month, 1 to 5, or the last one with -1. Default is all.
	// +optional
	// +kubebuilder:validation:Enum=-1;1;2;3;4;5
	Week *int32 `json:"week,omitempty"`

	// From is the wall-clock time at which the window opens, as HH:MM. Default is 00:00. A time that the clocks skip is
	// the time after the change of the clocks, and the first one of a time that occurs twice.
	// +optional
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	From string `json:"from,omitempty"`

	// Duration is the time for which the window is open. It may end on another day.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="must be between 1m and 168h"
	Duration metav1.Duration `json:"duration"`
}

// Weekday is a day of the week.
//
// +kubebuilder:validation:Enum=Mon;Tue;Wed;Thu;Fri;Sat;Sun
type Weekday string

// ChangeFreeze is a time at which no transaction starts.
//
// +kubebuilder:validation:XValidation:rule="self.from < self.to",message="to must be after from"
type ChangeFreeze struct {
	// From is the first moment of the freeze.
	From metav1.Time `json:"from"`
	// To is the first moment after it.
	To metav1.Time `json:"to"`
	// Reason is shown to users who wait.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	Reason string `json:"reason,omitempty"`
}

// ChangeClass is a class of changes that an approval selects.
//
// +kubebuilder:validation:Enum=Breaking;Permissions;Removal
type ChangeClass string

// The classes of changes.
const (
	// BreakingChange breaks the API of a kind, custom resources or other packages.
	BreakingChange ChangeClass = "Breaking"
	// PermissionsChange gives a runtime more permissions, or lets webhooks cover resources of others.
	PermissionsChange ChangeClass = "Permissions"
	// RemovalChange uninstalls a package, or deletes objects of one.
	RemovalChange ChangeClass = "Removal"
)

// NeededApproval selects changes that people must approve. A change is selected if it is of one of the classes, or
// concerns too many custom resources. Without both, every change is.
type NeededApproval struct {
	// For are the classes.
	// +optional
	// +kubebuilder:validation:MaxItems=3
	// +listType=set
	For []ChangeClass `json:"for,omitempty"`

	// Objects selects changes of kinds with more custom resources than this.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Objects *int64 `json:"objects,omitempty"`

	// People is the number of users, other than the creator of the transaction, who must approve. Default is 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	People int32 `json:"people,omitempty"`
}

// ChangePolicyStatus is the state of a policy.
type ChangePolicyStatus struct {
	// Conditions of the policy. Enforced is true if transactions follow the policy, and other clients cannot change
	// packages.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TypeEnforced is the type of the condition of a ChangePolicy.
const TypeEnforced = "Enforced"

// Reasons of the condition Enforced.
const (
	// ReasonInForce means that the policy is enforced.
	ReasonInForce = "InForce"
	// ReasonInvalid means that no transaction starts, because the policy is not valid.
	ReasonInvalid = "Invalid"
	// ReasonUnguarded means that transactions follow the policy, and other clients can still change packages.
	ReasonUnguarded = "Unguarded"
)
