package wire

// ModelListParams ask which models a turn can use. There are none yet.
type ModelListParams struct{}

// ModelListResult are the models that are known: any other name that the provider knows can be used too.
type ModelListResult struct {
	// Model is the one that turns use unless they or their session name another.
	Model string `json:"model"`
	// Models are in the order of the configuration, those of a provider sorted by name; Model is among them.
	Models []Model `json:"models"`
	// Unreached says of providers that did not list their models why, each one line for people.
	Unreached []string `json:"unreached,omitzero"`
}

// Model is one model.
type Model struct {
	// Name is what a turn's model is set to: provider/model.
	Name string `json:"name"`
	// From says who named it, for people.
	From string `json:"from,omitzero"`
}
