"""The methods that both clients make from calls: each line is one of `Client` and of `AsyncClient`."""

from tagsmith.client.calls import aliases as alias_calls
from tagsmith.client.calls import corpora as corpus_calls
from tagsmith.client.calls import jobs as job_calls
from tagsmith.client.calls import models as model_calls
from tagsmith.client.calls import service as service_calls
from tagsmith.client.calls import tagging as tagging_calls
from tagsmith.client.calls import training as training_calls
from tagsmith.client.operation import Called, Handled, Listed, Paged, Saved


class Operations:
    """The methods that correspond to one operation of the API each. `train` and `evaluate` upload files first."""

    # Corpora, lexicons and features
    upload = Called(corpus_calls.upload)
    corpora = Paged(corpus_calls.corpora)
    corpus = Called(corpus_calls.corpus)
    inspect = Called(corpus_calls.inspect)
    sentences = Paged(corpus_calls.sentences)
    report = Called(corpus_calls.report)
    content = Called(corpus_calls.content)
    save_content = Saved(corpus_calls.content)
    delete_corpus = Called(corpus_calls.delete_corpus)
    upload_lexicon = Called(corpus_calls.upload_lexicon)
    lexicons = Paged(corpus_calls.lexicons)
    lexicon = Called(corpus_calls.lexicon)
    lexicon_content = Called(corpus_calls.lexicon_content)
    save_lexicon_content = Saved(corpus_calls.lexicon_content)
    delete_lexicon = Called(corpus_calls.delete_lexicon)
    preview = Called(corpus_calls.preview)
    trainers = Listed(corpus_calls.trainers)
    presets = Listed(corpus_calls.presets)

    # Jobs
    submit = Handled(job_calls.submit)
    validate = Called(job_calls.validate)
    train = Handled(training_calls.train)
    compare = Handled(job_calls.compare)
    tune = Handled(job_calls.tune)
    evaluate = Handled(training_calls.evaluate)
    tag_corpus = Handled(job_calls.tag_corpus)
    rank = Handled(job_calls.rank)
    output = Called(job_calls.output)
    save_output = Saved(job_calls.output)
    table = Called(job_calls.table)
    plot = Called(job_calls.plot)
    jobs = Paged(job_calls.jobs)
    job = Handled(job_calls.job)
    cancel = Handled(job_calls.cancel)
    pause = Handled(job_calls.pause)
    resume = Handled(job_calls.resume)
    retry = Handled(job_calls.retry)
    delete_job = Called(job_calls.delete_job)
    events = Listed(job_calls.events)

    # Models
    models = Paged(model_calls.models)
    versions = Paged(model_calls.versions)
    version = Called(model_calls.version)
    artifact = Called(model_calls.artifact)
    save_artifact = Saved(model_calls.artifact)
    import_model = Called(model_calls.import_model)
    templates = Listed(model_calls.templates)
    template_selection = Called(model_calls.template_selection)
    template_plot = Called(model_calls.template_plot)
    features = Paged(model_calls.features)
    transitions = Paged(model_calls.transitions)
    weights = Called(model_calls.weights)
    compare_versions = Called(model_calls.compare_versions)
    delete_version = Called(model_calls.delete_version)
    delete_model = Called(model_calls.delete_model)

    # Aliases and policies
    aliases = Listed(alias_calls.aliases)
    alias = Called(alias_calls.alias)
    promote = Called(alias_calls.promote)
    rollback = Called(alias_calls.rollback)
    history = Listed(alias_calls.history)
    policy = Called(alias_calls.policy)
    set_policy = Called(alias_calls.set_policy)
    delete_policy = Called(alias_calls.delete_policy)
    retention = Called(alias_calls.retention)

    # Tagging
    tag = Called(tagging_calls.tag)
    tag_text = Called(tagging_calls.tag_text)
    parse = Called(tagging_calls.parse)

    # Keys, audit log and server
    create_key = Called(service_calls.create_key)
    keys = Paged(service_calls.keys)
    key = Called(service_calls.key)
    revoke_key = Called(service_calls.revoke_key)
    audit = Paged(service_calls.audit)
    liveness = Called(service_calls.liveness)
    readiness = Called(service_calls.readiness)
    server_version = Called(service_calls.server_version)
    metrics = Called(service_calls.metrics)
