package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/examples/provider-hello/api/v1alpha1"
)

// typeReady is the condition that reports whether the message is set.
const typeReady = "Ready"

// The reasons of Ready.
const (
	reasonAvailable        = "Available"
	reasonNoProviderConfig = "NoProviderConfig"
	reasonUnknownLanguage  = "UnknownLanguage"
)

var hello = map[string]string{"de": "Hallo", "en": "Hello", "es": "Hola", "fr": "Bonjour"}

// observe returns the status that a greeting should have. The config is nil if the
// ProviderConfig of the greeting does not exist. Only the transition times of the
// conditions depend on the clock.
func observe(g *v1alpha1.Greeting, config *v1alpha1.ProviderConfig) v1alpha1.GreetingStatus {
	status := *g.Status.DeepCopy()
	message, ready := greet(g.Spec, config)
	ready.Type, ready.ObservedGeneration = typeReady, g.Generation
	status.Message = message
	meta.SetStatusCondition(&status.Conditions, ready)
	return status
}

// greet returns the message and the Ready condition.
func greet(spec v1alpha1.GreetingSpec, config *v1alpha1.ProviderConfig) (string, metav1.Condition) {
	name := configName(spec)
	if config == nil && name != v1alpha1.DefaultProviderConfig {
		return "",
			notReady(reasonNoProviderConfig, "there is no ProviderConfig with the name %q: create it, or name another one", name)
	}
	word, ok := hello[orDefault(spec.Language, "en")]
	if !ok {
		return "", notReady(reasonUnknownLanguage, "%q is none of the languages de, en, es and fr", spec.Language)
	}
	punctuation := "!"
	if config != nil && config.Spec.Punctuation != nil {
		punctuation = *config.Spec.Punctuation
	}
	return word + ", " + spec.Name + punctuation, metav1.Condition{Status: metav1.ConditionTrue, Reason: reasonAvailable}
}

// configName returns the name of the ProviderConfig that a greeting uses.
func configName(spec v1alpha1.GreetingSpec) string {
	if spec.ProviderConfigRef == nil {
		return v1alpha1.DefaultProviderConfig
	}
	return orDefault(spec.ProviderConfigRef.Name, v1alpha1.DefaultProviderConfig)
}

func notReady(reason, message string, args ...any) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(message, args...)}
}

func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
