"""Records of made-up runs: what a test does not care about has some value."""

OBSERVED = {
    "loss": 1e-5,
    "accuracy": 1.0,
    "total_sensitivity": 1.0,
    "sharpness": 0.5,
    "low": 0.4,
    "high": 0.6,
    "released_sharpness": 0.505,
    "rho": 1.0,
    "blowup": 10.0,
    "released_blowup": 1.0,
    "mean_square_blowup": 100.0,
    "norm": 35.0,
    "has_converged": True,
}  # the fields of an Observation

WRITTEN = {
    "loss": 1e-5,
    "written_accuracy": 1.0,
    "answer_accuracy": 1.0,
    "sharpness": 0.5,
    "low": 0.4,
    "high": 0.6,
    "last_sharpness": 0.6,
    "rho": 1.0,
    "encoder_blowup": 10.0,
    "decoder_blowup": 10.0,
    "released_encoder_blowup": 1.0,
    "released_decoder_blowup": 1.0,
    "norm": 20.0,
    "has_converged": True,
}  # and those of a WrittenObservation

FITTED = {"fitted": 300, "steps": 600}
